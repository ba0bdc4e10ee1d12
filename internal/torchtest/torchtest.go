// Package torchtest runs PyTorch in tests that need it.
package torchtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// find returns an interpreter that has PyTorch, "" where there is none.
var find = sync.OnceValue(func() string {
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(path, "-c", "import torch").Run() == nil {
			return path
		}
	}
	return ""
})

// Run runs a program of PyTorch with arguments and returns what it printed. It
// skips the test where there is no PyTorch, and fails it where the program
// does.
func Run(t testing.TB, program string, args ...string) string {
	t.Helper()
	python := find()
	if python == "" {
		t.Skip("no PyTorch: python3 cannot import torch (Debian: apt-get install python3-torch)")
	}
	path := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(path, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, append([]string{path}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
