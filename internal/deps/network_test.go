package deps

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
)

// Only what serves opens a socket, and nothing calls out: packages of Go's
// network are imported where a server is, and nowhere else.
func TestOnlyServersUseTheNetwork(t *testing.T) {
	servers := []string{"cmd/hrm/view.go", "cmd/lm/serve.go", "lm/serve/", "view/", "internal/netlimit/"}
	calls := []string{"Dial", "DialTimeout", "DefaultClient", "Client", "Get(", "Post(", "PostForm", "LookupHost"}
	root := goldentest.Root()
	seen := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "data", "runs", "bin"}, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		f, err := parser.ParseFile(token.NewFileSet(), file, raw, parser.ImportsOnly)
		require.NoError(t, err)
		for _, im := range f.Imports {
			path, err := strconv.Unquote(im.Path.Value)
			require.NoError(t, err)
			if path != "net" && !strings.HasPrefix(path, "net/") || path == "net/url" || path == "net/netip" {
				continue
			}
			seen++
			require.True(t, slices.ContainsFunc(servers, func(s string) bool { return strings.HasPrefix(rel, s) }), "%s imports %s", rel, path)
			for _, call := range calls {
				for _, of := range []string{"net.", "http."} {
					require.NotContains(t, string(raw), of+call, rel)
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, seen, 5)
}
