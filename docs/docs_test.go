// Package docs_test keeps the pages of the repository true: what they link to
// exists, and the fields, tensors and code they show are those of the code.
// That their command lines parse is tested beside the commands (cmd/hrm,
// cmd/lm).
package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/goldentest"
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/pages"
	"deeploop/lm"
)

func allPages(t *testing.T) []pages.Page {
	t.Helper()
	all, err := pages.All(goldentest.Root())
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// inRoot is a path from the root on this machine.
func inRoot(file string) string { return filepath.Join(goldentest.Root(), filepath.FromSlash(file)) }

// target is the file that a link of a page leads to, from the root, and the
// heading in it; ours is false for the web.
func target(p pages.Page, l pages.Link) (file, heading string, ours bool) {
	if strings.Contains(l.Target, "://") {
		return "", "", false
	}
	file, heading, _ = strings.Cut(l.Target, "#")
	if file == "" {
		return p.Path, heading, true
	}
	return path.Join(path.Dir(p.Path), file), heading, true
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := allPages(t)
	headings := map[string]map[string]bool{}
	for _, p := range all {
		headings[p.Path] = p.Anchors()
	}
	seen := 0
	for _, p := range all {
		for _, l := range p.Links() {
			file, heading, ours := target(p, l)
			if !ours {
				continue
			}
			seen++
			_, err := os.Stat(inRoot(file))
			require.NoError(t, err, "%s:%d: [%s](%s)", p.Path, l.Line, l.Text, l.Target)
			require.True(t, heading == "" || headings[file][heading], "%s:%d: %s has no heading #%s", p.Path, l.Line, file, heading)
		}
	}
	require.Greater(t, seen, 100)
}

// Every page below docs can be reached from docs/README.md, and that from the
// README.
func TestPagesAreLinked(t *testing.T) {
	byPath := map[string]pages.Page{}
	for _, p := range allPages(t) {
		byPath[p.Path] = p
	}
	reached := map[string]bool{}
	var walk func(file string)
	walk = func(file string) {
		p, isPage := byPath[file]
		if !isPage || reached[file] {
			return
		}
		reached[file] = true
		for _, l := range p.Links() {
			if to, _, ours := target(p, l); ours {
				walk(to)
			}
		}
	}
	walk("README.md")
	for file := range byPath {
		if strings.HasPrefix(file, "docs/") || strings.HasPrefix(file, "experiments/") {
			require.True(t, reached[file], "no page leads to %s", file)
		}
	}
}

// symbolForm is the text of a link to code: package.Name, or with a method or
// field.
var symbolForm = regexp.MustCompile(`^[a-z][a-z0-9]*(\.\w+){1,2}$`)

// A link to a Go file whose text is a symbol's name leads to the file that
// declares it.
func TestLinkedSymbolsExist(t *testing.T) {
	files := map[string]*source{}
	seen := 0
	for _, p := range allPages(t) {
		for _, l := range p.Links() {
			file, _, ours := target(p, l)
			name := strings.Trim(l.Text, "`")
			if !ours || path.Ext(file) != ".go" || path.Ext(name) == ".go" {
				continue
			}
			require.Regexp(t, symbolForm, name, "%s:%d: a link to Go code says which symbol, or the file", p.Path, l.Line)
			if files[file] == nil {
				files[file] = parse(t, file)
			}
			require.True(t, files[file].declares(name), "%s:%d: %s does not declare %s", p.Path, l.Line, file, name)
			seen++
		}
	}
	require.Greater(t, seen, 50)
}

// A table with a note names all fields of the types, some strings of the files,
// or the tensors of a model.
func TestTablesNameWhatThereIs(t *testing.T) {
	seen := 0
	for _, p := range allPages(t) {
		for _, table := range p.Tables() {
			kind, rest, found := strings.Cut(table.Note, ": ")
			if !found {
				continue
			}
			where := p.Path + ": " + table.Note
			require.NotEmpty(t, table.Names, where)
			switch kind {
			case "fields": // FILE TYPE...
				words := strings.Fields(rest)
				file := parse(t, words[0])
				var want []string
				for _, name := range words[1:] {
					keys := file.keys(name)
					require.NotEmpty(t, keys, "%s: type %s has no keys", where, name)
					want = append(want, keys...)
				}
				require.ElementsMatch(t, unique(want), unique(lastParts(table.Names)), where)
			case "strings": // FILE...
				have := map[string]bool{}
				for _, name := range strings.Fields(rest) {
					for s := range parse(t, name).strings {
						have[s] = true
					}
				}
				for _, name := range table.Names {
					require.True(t, have[name], "%s: no string %q", where, name)
				}
			case "tensors":
				require.ElementsMatch(t, tensors(t, rest), table.Names, where)
			default:
				t.Errorf("%s: what is %q?", where, kind)
			}
			seen++
		}
	}
	require.Greater(t, seen, 10)
}

// lastParts is what follows the last dot of each name.
func lastParts(names []string) (last []string) {
	for _, n := range names {
		last = append(last, n[strings.LastIndexByte(n, '.')+1:])
	}
	return last
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

var number = regexp.MustCompile(`\.\d+\.`)

// tensors are the names of a model's parameters with N for the number of a
// block, those of all options that add some.
func tensors(t *testing.T, model string) (names []string) {
	t.Helper()
	add := func(params []*graph.Param) {
		for _, p := range params {
			names = append(names, number.ReplaceAllString(p.Name, ".N."))
		}
	}
	switch model {
	case "hrm":
		for _, placement := range []string{hrm.PlacementDeepLoop, hrm.PlacementPreNorm} {
			c := hrm.PresetTesting().Arch
			c.SeqLen, c.VocabSize, c.NumPuzzleIdentifiers = 4, 12, 2
			c.Placement, c.InnerNorm = placement, placement == hrm.PlacementDeepLoop
			c.NormGain, c.InputRMS, c.PosEncodings = true, true, hrm.PosLearned
			m, err := hrm.NewModel(c, kernel.Float32, 0)
			require.NoError(t, err)
			add(m.Params())
		}
		names = append(names, "H_init", "L_init", "puzzle_emb.weights")
	case "lm":
		c := lm.PresetTesting().Arch
		c.FinalNorm, c.VocabSize = lm.On, 5
		m, err := lm.NewModel(c, kernel.Float32, 0)
		require.NoError(t, err)
		add(m.Params())
	default:
		t.Fatalf("no model %q", model)
	}
	return unique(names)
}

// What a page shows as Go is in a test that is compiled and run.
func TestShownCodeIsTested(t *testing.T) {
	seen := 0
	for _, p := range allPages(t) {
		for _, b := range p.Blocks() {
			if b.Language != "go" {
				continue
			}
			found := false
			for _, l := range p.Links() {
				if file, _, ours := target(p, l); ours && strings.HasSuffix(file, "_test.go") {
					text, err := os.ReadFile(inRoot(file))
					require.NoError(t, err)
					found = found || strings.Contains(outdented(string(text)), outdented(b.Text))
				}
			}
			require.True(t, found, "%s:%d: this code is in none of the tests that the page links to", p.Path, b.Line)
			seen++
		}
	}
	require.NotZero(t, seen)
}

// outdented is a text without the white space that its lines begin with.
func outdented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return strings.TrimSpace(b.String())
}
