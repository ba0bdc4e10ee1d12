package view

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names are found where they are, whatever they hold, across blocks of the
// reader and in whatever way the list is written.
func TestNamesAreFound(t *testing.T) {
	want := []string{"<blank>", "a", `quo"te`, `back\`, `\"`, "ünï", "", strings.Repeat("x", 100), "] , ["}
	packed, err := json.Marshal(want)
	require.NoError(t, err)
	wide, err := json.MarshalIndent(want, "", "\t")
	require.NoError(t, err)
	for _, text := range []string{string(packed), string(wide) + "\r\n", strings.ReplaceAll(string(packed), "ü", `\u00fc`)} {
		path := filepath.Join(t.TempDir(), "identifiers.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		n := &names{path: path}
		require.NoError(t, n.scan(bufio.NewReaderSize(strings.NewReader(text), 16), len(want)))
		r, err := n.open()
		require.NoError(t, err)
		for i, w := range want {
			got, err := r.name(int32(i))
			require.NoError(t, err)
			require.Equal(t, w, got)
		}
		_, err = r.name(int32(len(want)))
		require.Error(t, err)
		r.close()
	}
	require.NoError(t, (&names{}).scan(bufio.NewReader(strings.NewReader(" [ ] ")), 0))
}

func TestNamesThatAreNoList(t *testing.T) {
	for text, message := range map[string]string{
		``: "cut off", `["a", "b"`: "cut off", `["a", "b`: "cut off", `["a"]`: "it has 1 names, expected 2",
		`["a", "b", "c"]`: "expected a list of 2 names", `["a" "b"]`: "found '\"'", `["a",, "b"]`: "found ','", `["a", "b",]`: "found ']'",
		`["a", 1]`: "found '1'", `{"a": "b"}`: "found '{'", `["a", "b"] x`: "found 'x'", `["a", "b"]]`: "found ']'", `[["a"], "b"]`: "found '['", `"a", "b"`: "found '\"'",
	} {
		err := (&names{}).scan(bufio.NewReader(strings.NewReader(text)), 2)
		require.ErrorContains(t, err, message, text)
	}
}

// A list of a million names is scanned in far less than the second that
// somebody waits for a page.
func BenchmarkNames(b *testing.B) {
	text := "[" + strings.Repeat(`"007bbfb7_t3_0123456789", `, 1_000_000) + `"end"]`
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		n := &names{at: make([]int64, 0, 1_000_002)}
		require.NoError(b, n.scan(bufio.NewReaderSize(strings.NewReader(text), 1<<16), 1_000_001))
	}
}
