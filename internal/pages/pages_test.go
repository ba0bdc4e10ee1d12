package pages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = "# A `b` c\n\nsee [x](y.md#z), ![p](i.png), `[no](link)` and [`a.B`](c.go)\n\n" +
	"```sh\n# no heading\nhrm train [no](link)\n```\n## A b c\n## Über, 2_3 [t](u)\n\n" +
	"<!-- fields: f.go T -->\n\n| name | what |\n| --- | --- |\n| `a`, `b` | `c` |\n| `d` | |\n\n| `e` | |\n"

func TestPage(t *testing.T) {
	p := Page{Text: sample}
	require.Equal(t, []Link{{3, "x", "y.md#z"}, {3, "p", "i.png"}, {3, "`a.B`", "c.go"}, {10, "t", "u"}}, p.Links())
	require.Equal(t, map[string]bool{"a-b-c": true, "a-b-c-1": true, "über-2_3-t": true}, p.Anchors())
	require.Equal(t, []Block{{5, "sh", "# no heading\nhrm train [no](link)\n"}}, p.Blocks())
	require.Equal(t, []string{"b", "[no](link)", "a.B", "a", "b", "c", "d", "e"}, p.Code())
	require.Equal(t, []Table{{12, "fields: f.go T", []string{"a", "b", "d"}}}, p.Tables())
}

func TestCommands(t *testing.T) {
	require.Equal(t, [][]string{
		{"hrm", "eval"}, {"hrm", "score", "--json"}, {"lm", "generate", "--prompt", "Once upon"},
		{"head", "-c", "200"}, {"lm", "generate", "--prompt", "-"}, {"a", "p|q", "b"}, {"x", "#y"}, {"z"},
	}, Commands("hrm eval && hrm score --json > out.json   # a comment\nlm generate --prompt \"Once upon\"\n"+
		"head -c 200 | lm generate --prompt -\na p|q \\\n  b\nx '#y'; z\n# all comment\n"))
}

func TestAll(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"README.md", "docs/a.md", "docs/b.txt", ".git/c.md", "runs/x/d.md", "docs/runs/e.md"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(name), 0o644))
	}
	all, err := All(root)
	require.NoError(t, err)
	require.Equal(t, []Page{{"README.md", "README.md"}, {"docs/a.md", "docs/a.md"}, {"docs/runs/e.md", "docs/runs/e.md"}}, all)
	_, err = All(filepath.Join(root, "nosuch"))
	require.ErrorContains(t, err, "read pages")
}
