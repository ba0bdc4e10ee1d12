// Package goldentest finds the recorded reference numbers and ARC corpora
// that some tests compare with.
package goldentest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Root returns the repository's root folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Dir returns the folder of golden numbers: $GOLDEN_DIR, or ../shared/golden
// beside the repository. It skips the test, saying so, when neither exists;
// a GOLDEN_DIR that is set but missing fails it.
func Dir(t testing.TB) string {
	t.Helper()
	return find(t, "GOLDEN_DIR", "golden")
}

// ARCData returns the folder of ARC corpora (arc-agi-1, arc-agi-2,
// concept-arc): $ARC_DATA_DIR, or ../shared/data beside the repository.
func ARCData(t testing.TB) string {
	t.Helper()
	return find(t, "ARC_DATA_DIR", "data")
}

func find(t testing.TB, env, folder string) string {
	t.Helper()
	if d := os.Getenv(env); d != "" {
		if _, err := os.Stat(d); err != nil {
			t.Fatalf("%s: %v", env, err)
		}
		return d
	}
	d := filepath.Join(Root(), "..", "shared", folder)
	if _, err := os.Stat(d); err != nil {
		t.Skipf("no %s set and no ../shared/%s beside the repository", env, folder)
	}
	return d
}

// Glob returns the files of dir that match pattern, sorted; none is a failure.
func Glob(t testing.TB, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s (%v)", pattern, dir, err)
	}
	return files
}
