package deps

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only what serves opens a socket, and nothing calls out: packages of Go's
// network are imported where a server is, and nowhere else.
func TestOnlyServersUseTheNetwork(t *testing.T) {
	servers := []string{"cmd/hrm/view.go", "cmd/lm/serve.go", "lm/serve/", "view/", "internal/netlimit/"}
	calls := []string{"Dial", "DialTimeout", "DefaultClient", "Client", "Get(", "Post(", "PostForm", "LookupHost"}
	seen := 0
	eachSource(t, made, func(rel string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), rel, src, parser.ImportsOnly)
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
					require.NotContains(t, string(src), of+call, rel)
				}
			}
		}
	})
	require.Greater(t, seen, 5)
}
