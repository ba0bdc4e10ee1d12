package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// fileError is a mistake in a configuration file.
type fileError struct {
	path string
	line int
	msg  string
}

func (e *fileError) Error() string { return fmt.Sprintf("read %s:%d: %s", e.path, e.line, e.msg) }

// BadInput marks the error as the user's.
func (e *fileError) BadInput() bool { return true }

// configFile reads one YAML file into a configuration.
type configFile[T any] struct {
	schema  *Schema[T]
	foreign map[string]string
	skip    map[string]bool
	path    string
	into    *T
	lines   map[string]int // dotted key -> line, of the keys the file sets
}

// readConfigFile sets the keys the file at path names and returns their lines.
// foreign names keys of other programs and says what to do instead, skip those
// that are passed over.
func readConfigFile[T any](s *Schema[T], foreign map[string]string, skip map[string]bool, path string, into *T) (map[string]int, error) {
	tokens, err := readTokens(path)
	if err != nil {
		return nil, err
	}
	r := &configFile[T]{schema: s, foreign: foreign, skip: skip, path: path, into: into, lines: map[string]int{}}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, r.syntax(err)
	}
	docs := 0
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if docs++; docs > 1 {
			return nil, r.fail(d.Body, "a second document; expected one")
		}
		if err := r.section(d.Body, ""); err != nil {
			return nil, err
		}
	}
	return r.lines, nil
}

func (r *configFile[T]) fail(n ast.Node, format string, args ...any) error {
	return &fileError{r.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)}
}

func (r *configFile[T]) syntax(err error) error {
	if e, ok := err.(yaml.Error); ok && e.GetToken() != nil {
		return &fileError{r.path, e.GetToken().Position.Line, "not valid YAML: " + e.GetMessage()}
	}
	return &fileError{r.path, 1, "not valid YAML: " + err.Error()}
}

// section reads the keys of a mapping; prefix is "" or ends in a dot.
func (r *configFile[T]) section(n ast.Node, prefix string) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		if prefix == "" {
			return r.fail(n, "found %s, expected lines of the form \"key: value\"", describe(n))
		}
		return r.fail(n, "%s is %s, expected indented lines of the form \"key: value\"", strings.TrimSuffix(prefix, "."), describe(n))
	}
	for _, kv := range m.Values {
		if err := r.entry(kv, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (r *configFile[T]) entry(kv *ast.MappingValueNode, prefix string) error {
	name := kv.Key.GetToken().Value
	key := prefix + name
	if _, empty := kv.Value.(*ast.NullNode); r.skip[key] || empty && r.skip != nil {
		return nil
	}
	if hint := hydraKey(key); hint != "" {
		return r.fail(kv.Key, "%s: %s", key, hint)
	}
	if hint := r.foreign[key]; hint != "" {
		return r.fail(kv.Key, "%s is not a key here: %s", key, hint)
	}
	if r.schema.groups[key] {
		return r.section(kv.Value, key+".")
	}
	f := r.schema.byKey[key]
	if f != nil && strings.Contains(name, ".") {
		section, last := name[:strings.LastIndexByte(name, '.')], name[strings.LastIndexByte(name, '.')+1:]
		return r.fail(kv.Key, "%q: in a file, write %s below the section %s (dots are for --set)", name, last, section)
	}
	if f == nil {
		return r.fail(kv.Key, "unknown key %q%s", key, r.schema.suggest(key))
	}
	if err := r.value(kv, f); err != nil {
		return err
	}
	r.lines[key] = kv.Key.GetToken().Position.Line
	return nil
}

// value stores a node into a field, strictly: a quoted number is a string.
func (r *configFile[T]) value(kv *ast.MappingValueNode, f *Field) error {
	n, at := kv.Value, r.schema.at(r.into, f)
	if text, ok := interpolation(n); ok {
		return r.fail(kv.Key, "%s is %s: Hydra's ${...} is not understood here; write the value itself", f.Key, text)
	}
	if f.kind == kindList {
		return r.list(n, f, at)
	}
	text, quoted, scalar := scalarText(n)
	wrong := func(want string) error {
		return r.fail(kv.Key, "%s is %s, %s", f.Key, describe(n), want)
	}
	if !scalar {
		return wrong(want(f.kind))
	}
	if f.kind == kindString {
		if !quoted && !plainString(n, text) {
			return wrong("expected a string; write it in quotes if it is one")
		}
	} else if quoted {
		return wrong(want(f.kind))
	}
	if err := setValue(at, text); err != nil {
		return wrong(err.Error())
	}
	return nil
}

func (r *configFile[T]) list(n ast.Node, f *Field, at reflect.Value) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.fail(n, "%s is %s, %v", f.Key, describe(n), errWantList)
	}
	var list []string
	for _, e := range seq.Values {
		if text, ok := interpolation(e); ok {
			return r.fail(e, "%s holds %s: Hydra's ${...} is not understood here; write the value itself", f.Key, text)
		}
		text, quoted, scalar := scalarText(e)
		_, whole := e.(*ast.IntegerNode) // eval_loops: [1, 2]
		if !scalar || !quoted && !whole && !plainString(e, text) {
			return r.fail(e, "%s holds %s, %v", f.Key, describe(e), errWantList)
		}
		list = append(list, text)
	}
	at.Set(reflect.ValueOf(list))
	return nil
}

func want(k kind) string {
	switch k {
	case kindBool:
		return errWantBool.Error()
	case kindInt:
		return errWantInt.Error()
	case kindFloat:
		return errWantFloat.Error()
	}
	return "expected a string"
}

// scalarText returns a scalar's text and whether it was quoted (or a block).
// The text is the file's own, since the parser takes 1e-04 for a string.
func scalarText(n ast.Node) (text string, quoted, ok bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		t := n.GetToken().Type
		return n.Value, t == token.SingleQuoteType || t == token.DoubleQuoteType, true
	case *ast.LiteralNode:
		return n.Value.Value, true, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, false, true
	}
	return "", false, false
}

// plainString reports whether an unquoted scalar is a string and no number.
func plainString(n ast.Node, text string) bool {
	if _, ok := n.(*ast.StringNode); !ok {
		return false
	}
	_, err := parseFloat(text)
	return err != nil
}

// describe names what a node holds, for "KEY is ...".
func describe(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "empty"
	case *ast.MappingNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "an anchor, alias or tag (not understood here)"
	}
	if text, quoted, ok := scalarText(n); ok {
		if quoted {
			return "the string " + jsonQuote(text)
		}
		return text
	}
	return "something else"
}

// hydraKey explains the keys by which Hydra composes files.
func hydraKey(key string) string {
	switch {
	case key == "defaults":
		return "Hydra's list of files to merge is not understood here; copy the keys of those files into this one (arch keys below \"arch:\") and remove it"
	case key == "hydra":
		return "Hydra's own settings are not understood here; remove the section"
	}
	return ""
}

// interpolation finds Hydra's ${...}, which no value may hold, quoted or not.
func interpolation(n ast.Node) (string, bool) {
	text, _, ok := scalarText(n)
	return text, ok && strings.Contains(text, "${")
}
