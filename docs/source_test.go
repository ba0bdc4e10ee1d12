package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a Go file as far as pages speak of it.
type source struct {
	pkg     string
	symbols map[string]bool // Name, Type.Method, Type.Field
	types   map[string]*ast.StructType
	strings map[string]bool
}

func parse(t *testing.T, file string) *source {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), inRoot(file), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	s := &source{pkg: f.Name.Name, symbols: map[string]bool{}, types: map[string]*ast.StructType{}, strings: map[string]bool{}}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			s.symbols[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.spec(spec)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.strings[text] = true
			}
		}
		return true
	})
	return s
}

func (s *source) spec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			s.symbols[n.Name] = true
		}
	case *ast.TypeSpec:
		name := spec.Name.Name
		s.symbols[name] = true
		var fields *ast.FieldList
		switch x := spec.Type.(type) {
		case *ast.StructType:
			s.types[name], fields = x, x.Fields
		case *ast.InterfaceType:
			fields = x.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				s.symbols[name+"."+n.Name] = true
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

// declares reports whether the file has package.Name or package.Type.Member.
func (s *source) declares(name string) bool {
	pkg, symbol, _ := strings.Cut(name, ".")
	return pkg == s.pkg && s.symbols[symbol]
}

// keys are the names of a struct's fields in JSON or YAML.
func (s *source) keys(name string) (keys []string) {
	x := s.types[name]
	if x == nil {
		return nil
	}
	for _, f := range x.Fields.List {
		if f.Tag == nil {
			continue
		}
		raw, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		for _, kind := range []string{"json", "yaml"} {
			key, _, _ := strings.Cut(reflect.StructTag(raw).Get(kind), ",")
			if key != "" && key != "-" {
				keys = append(keys, key)
				break
			}
		}
	}
	return keys
}
