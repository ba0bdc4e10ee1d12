package deps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
)

// listed is one package as `go list -json` prints it.
type listed struct {
	ImportPath, Name string
	Imports, Deps    []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-e", "-json=ImportPath,Name,Imports,Deps", "./...")
	cmd.Dir = goldentest.Root()
	out, err := cmd.Output()
	require.NoError(t, err)
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		require.NoError(t, d.Decode(&p))
		if strings.HasPrefix(p.ImportPath, "deeploop/") {
			all = append(all, p)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// within reports whether package p is one of the folders or below one.
func within(p string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return p == "deeploop/"+f || strings.HasPrefix(p, "deeploop/"+f+"/")
	})
}

// graphLibrary reports whether p belongs to Gorgonia.
func graphLibrary(p string) bool {
	return p == "gorgonia.org/gorgonia" || strings.HasPrefix(p, "gorgonia.org/gorgonia/") ||
		p == "gorgonia.org/tensor" || strings.HasPrefix(p, "gorgonia.org/tensor/")
}

// brokenRules returns the import rules that a package breaks.
func brokenRules(p listed) []string {
	var broken []string
	deny := func(list []string, why string, bad func(string) bool) {
		for _, d := range list {
			if bad(d) {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.ImportPath, d, why))
			}
		}
	}
	if within(p.ImportPath, "arc", "augment", "voting") {
		deny(p.Deps, "arc, augment and voting know no model and no tensor", func(d string) bool {
			return graphLibrary(d) || within(d, "hrm", "lm", "deeploop", "internal/graph", "internal/ops", "internal/kernel", "internal/train", "internal/optim")
		})
	}
	if within(p.ImportPath, "hrm") {
		deny(p.Deps, "hrm and lm never meet", func(d string) bool { return within(d, "lm") })
	}
	if within(p.ImportPath, "lm") {
		deny(p.Deps, "hrm and lm never meet", func(d string) bool { return within(d, "hrm") })
	}
	if !within(p.ImportPath, "internal/graph", "internal/ops", "deeploop", "hrm", "lm") {
		deny(p.Imports, "only internal/graph, internal/ops, deeploop, hrm and lm build graphs", graphLibrary)
	}
	if !within(p.ImportPath, "cmd", "bench", "internal/cli", "internal/command") && p.Name != "main" { // main: generators run by hand
		deny(p.Imports, "flags belong to programs", func(d string) bool {
			return d == "flag" || strings.HasPrefix(d, "github.com/spf13/")
		})
	}
	if !within(p.ImportPath, "cmd", "bench", "internal/cli", "internal/command", "internal/train") { // train: the error kinds that end a program
		deny(p.Imports, "internal/cli is for programs", func(d string) bool { return within(d, "internal/cli") })
	}
	if !within(p.ImportPath, "cmd", "bench", "internal/command") {
		deny(p.Imports, "internal/command is for programs", func(d string) bool { return within(d, "internal/command") })
	}
	if !within(p.ImportPath, "cmd", "bench", "internal/command", "internal/kernel/pick") { // picktest is below it
		deny(p.Imports, "only programs choose a kernel", func(d string) bool { return within(d, "internal/kernel/pick") })
	}
	if within(p.ImportPath, "internal/command") {
		deny(p.Deps, "what programs share knows no model", func(d string) bool { return within(d, "hrm", "lm") })
	}
	if within(p.ImportPath, "internal/kernel/ref") {
		deny(p.Imports, "the reference is plain Go", func(d string) bool { return d == "C" || d == "unsafe" })
	}
	return broken
}

func TestImportRules(t *testing.T) {
	for _, p := range listPackages(t) {
		require.Empty(t, brokenRules(p))
	}
}

func TestImportRulesCanBeBroken(t *testing.T) {
	for _, p := range []listed{
		{ImportPath: "deeploop/arc", Deps: []string{"deeploop/hrm"}},
		{ImportPath: "deeploop/voting", Deps: []string{"gorgonia.org/tensor"}},
		{ImportPath: "deeploop/augment/x", Deps: []string{"deeploop/internal/kernel/ref"}},
		{ImportPath: "deeploop/hrm", Deps: []string{"deeploop/lm"}},
		{ImportPath: "deeploop/lm/scaling", Deps: []string{"deeploop/hrm"}},
		{ImportPath: "deeploop/internal/train", Imports: []string{"gorgonia.org/gorgonia"}},
		{ImportPath: "deeploop/hrm", Imports: []string{"github.com/spf13/cobra"}},
		{ImportPath: "deeploop/hrm", Imports: []string{"deeploop/internal/cli"}},
		{ImportPath: "deeploop/hrm", Imports: []string{"deeploop/internal/kernel/pick"}},
		{ImportPath: "deeploop/hrm", Imports: []string{"deeploop/internal/command"}},
		{ImportPath: "deeploop/internal/command", Deps: []string{"deeploop/lm"}},
		{ImportPath: "deeploop/internal/kernel/ref", Imports: []string{"C"}},
	} {
		require.Len(t, brokenRules(p), 1, "%+v", p)
	}
	require.Empty(t, brokenRules(listed{ImportPath: "deeploop/cmd/hrm", Imports: []string{"deeploop/internal/cli", "github.com/spf13/cobra"}, Deps: []string{"deeploop/lm"}}))
}

// world is what nothing below cmd may touch: environment, standard streams,
// clock, global random state. "*" is every lower-level function but the
// constructors of random generators.
var world = map[string][]string{
	"os":           {"Getenv", "LookupEnv", "Environ", "Args", "Stdin", "Stdout", "Stderr", "Exit"},
	"time":         {"Now", "Since", "Until"},
	"fmt":          {"Print", "Println", "Printf"},
	"log":          {"Print", "Println", "Printf", "Fatal", "Fatalf", "Fatalln", "Default"},
	"math/rand":    {"*"},
	"math/rand/v2": {"*"},
}

// worldUses returns the uses of world in a source file.
func worldUses(name string, src any) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, im := range f.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path.Base(p)
		if local == "v2" {
			local = path.Base(path.Dir(p))
		}
		if im.Name != nil {
			local = im.Name.Name
		}
		names[local] = p
	}
	var uses []string
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			banned := world[names[x.Name]]
			random := slices.Contains(banned, "*") && ast.IsExported(sel.Sel.Name) && !strings.HasPrefix(sel.Sel.Name, "New") &&
				!slices.Contains([]string{"Rand", "PCG", "ChaCha8", "Source", "Source64", "Zipf"}, sel.Sel.Name)
			if random || slices.Contains(banned, sel.Sel.Name) {
				uses = append(uses, fmt.Sprintf("%s: %s.%s", fset.Position(sel.Pos()), x.Name, sel.Sel.Name))
			}
		}
		return true
	})
	return uses, nil
}

// made are folders of what programs make.
var made = []string{"data", "runs", "bin"}

// eachSource calls f with every Go file of the repository but tests and what
// lies below the folders left out: its path from the root, and the text.
func eachSource(t *testing.T, leftOut []string, f func(rel string, src []byte)) {
	t.Helper()
	root := goldentest.Root()
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
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(leftOut, rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f(rel, src)
		return nil
	})
	require.NoError(t, err)
}

func TestNothingBelowCmdTouchesTheWorld(t *testing.T) {
	exempt := append([]string{"cmd", "internal/cli", "internal/command", "internal/goldentest", "bench"}, made...)
	eachSource(t, exempt, func(rel string, src []byte) {
		if bytes.Contains(src, []byte("\npackage main\n")) || bytes.HasPrefix(src, []byte("package main\n")) {
			return // generators run by hand
		}
		uses, err := worldUses(rel, src)
		require.NoError(t, err)
		require.Empty(t, uses, "pass it in as an argument instead")
	})
}

func TestWorldUsesAreFound(t *testing.T) {
	uses, err := worldUses("x.go", `package x
import ("fmt"; "os"; clock "time"; "math/rand/v2"; "log")
var a = os.Getenv("A")
var b = clock.Now()
func c() { fmt.Println(rand.IntN(3), rand.New(rand.NewPCG(1, 2)), os.ReadFile, fmt.Sprint()); log.Printf("x") }
`)
	require.NoError(t, err)
	require.Len(t, uses, 5, "%v", uses)
}

// The top level is fixed; what programs make goes under data and runs.
func TestTopLevelHoldsNothingElse(t *testing.T) {
	allowed := []string{
		"README.md", "RESULTS.md", "Makefile", "LICENSE", "go.mod", "go.sum",
		"arc", "augment", "bench", "cmd", "deeploop", "docs", "experiments", "hrm", "internal", "lm", "testdata", "view", "voting",
		"bin", "data", "runs",
	}
	entries, err := os.ReadDir(goldentest.Root())
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			require.Contains(t, allowed, e.Name())
		}
	}
}
