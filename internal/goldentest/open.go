package goldentest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deeploop/internal/safetensors"
)

// Name is a recorded case's: that of its JSON file without the extension.
func Name(path string) string { return strings.TrimSuffix(filepath.Base(path), ".json") }

// Open reads a recorded case: its JSON file into record, and the tensors beside
// it, which stay open until the test ends.
func Open(t testing.TB, path string, record any) *safetensors.File {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, record)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	f, err := safetensors.Open(strings.TrimSuffix(path, ".json") + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
