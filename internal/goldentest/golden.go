// Package goldentest finds the recorded reference numbers and ARC corpora
// that some tests compare with.
package goldentest

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root returns the repository's root folder: the one with go.mod, at or above
// the folder of the package under test.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("goldentest: no go.mod above the working folder")
		}
		dir = filepath.Dir(dir)
	}
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
	d, ok := beside(folder)
	if !ok {
		t.Skipf("no %s set and no ../shared/%s beside the repository", env, folder)
	}
	return d
}

func beside(folder string) (string, bool) {
	d := filepath.Join(Root(), "..", "shared", folder)
	_, err := os.Stat(d)
	return d, err == nil
}

// Files returns the golden files that match pattern, sorted. A folder of golden
// numbers may hold only some kinds: with none of this kind the test is
// skipped, naming it.
func Files(t testing.TB, pattern string) []string {
	t.Helper()
	files := match(t, Dir(t), pattern)
	if len(files) == 0 {
		t.Skipf("GOLDEN_DIR has no %s", pattern)
	}
	return files
}

// Cases is Files and the copies of the repository's folder own, which run
// where there are no golden numbers. A golden file stands in for the copy of
// the same name. What is absent is a skipped subtest.
func Cases(t *testing.T, own, pattern string) []string {
	t.Helper()
	byName := map[string]string{}
	for _, f := range Glob(t, own, pattern) {
		byName[filepath.Base(f)] = f
	}
	var golden []string
	if _, ok := beside("golden"); ok || os.Getenv("GOLDEN_DIR") != "" {
		golden = match(t, Dir(t), pattern)
	}
	if len(golden) == 0 {
		t.Run("GOLDEN_DIR", func(t *testing.T) { Files(t, pattern) }) // says what is absent
	}
	for _, f := range golden {
		byName[filepath.Base(f)] = f
	}
	files := make([]string, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files
}

// Each runs check on each file as a subtest of the file's name.
func Each(t *testing.T, files []string, check func(t *testing.T, path string)) {
	t.Helper()
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { check(t, f) })
	}
}

// Glob returns the files of dir that match pattern, sorted; none is a failure.
func Glob(t testing.TB, dir, pattern string) []string {
	t.Helper()
	files := match(t, dir, pattern)
	if len(files) == 0 {
		t.Fatalf("no %s in %s", pattern, dir)
	}
	return files
}

func match(t testing.TB, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return files
}

// Partner returns the file of the same set as path: one word of its base name
// is replaced, and so is its extension. Suffixes stay: a_x.json, a to b.
func Partner(path, word, other, ext string) string {
	dir, base := filepath.Split(path)
	base, _, _ = strings.Cut(base, ".")
	return dir + strings.Replace(base, word, other, 1) + ext
}

// Relative fails the test where got, by element, is further from want than tol of
// its norm (both Euclidean).
func Relative(t testing.TB, name string, want []float32, got func(i int) float64, tol float64) {
	t.Helper()
	var off, norm float64
	for i, w := range want {
		d := float64(w) - got(i)
		off += d * d
		norm += float64(w) * float64(w)
	}
	if off, most := math.Sqrt(off), tol*math.Sqrt(norm)+1e-12; !(off <= most) {
		t.Fatalf("%s: off by %g in all, expected at most %g", name, off, most)
	}
}
