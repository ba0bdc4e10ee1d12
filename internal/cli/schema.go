package cli

import (
	"fmt"
	"reflect"
	"strings"

	"deeploop/internal/wording"
)

// Schema is the list of keys of a configuration struct T, in the order of its
// fields. A key is the field's yaml tag, dotted below nested structs
// (arch.hidden_size); the flag is the last part of the key in kebab case
// (--hidden-size) unless a flag tag names another; the help tag says what the
// key does. Fields are string, bool, int, float64, []string or structs of
// such, embedded ones without a tag for keys of the struct around them; yaml:"-"
// leaves a field out.
type Schema[T any] struct {
	fields []*Field
	byKey  map[string]*Field
	groups map[string]bool // arch, arch.loss
}

// Field is one key.
type Field struct {
	Key, Flag, Help string
	index           []int
	kind            kind
}

// NewSchema reads T's tags. It panics on a field it cannot handle or two
// fields with one flag.
func NewSchema[T any]() *Schema[T] {
	s := &Schema[T]{byKey: map[string]*Field{}, groups: map[string]bool{}}
	s.walk(reflect.TypeFor[T](), "", nil)
	flags := map[string]bool{}
	for _, f := range s.fields {
		if flags[f.Flag] {
			panic("cli: two keys share the flag --" + f.Flag)
		}
		flags[f.Flag] = true
	}
	return s
}

func (s *Schema[T]) walk(t reflect.Type, prefix string, index []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get("yaml")
		if name == "-" {
			continue
		}
		at := append(append([]int(nil), index...), i)
		if name == "" && sf.Anonymous {
			s.walk(sf.Type, prefix, at)
			continue
		}
		if name == "" {
			panic("cli: configuration field without a yaml tag: " + sf.Name)
		}
		key := prefix + name
		if sf.Type.Kind() == reflect.Struct {
			s.groups[key] = true
			s.walk(sf.Type, key+".", at)
			continue
		}
		k, ok := kindOf(sf.Type)
		if !ok {
			panic("cli: configuration field of a type that has no text: " + sf.Name)
		}
		flag := sf.Tag.Get("flag")
		if flag == "" {
			flag = strings.ReplaceAll(name, "_", "-")
		}
		f := &Field{Key: key, Flag: flag, Help: sf.Tag.Get("help"), index: at, kind: k}
		s.fields = append(s.fields, f)
		s.byKey[key] = f
	}
}

// Fields returns all keys in order.
func (s *Schema[T]) Fields() []*Field { return s.fields }

// Text returns the value of field f of c as the text a flag would take.
func (s *Schema[T]) Text(c T, f *Field) string {
	return formatValue(reflect.ValueOf(c).FieldByIndex(f.index))
}

// set stores text, as given on a command line, into c's field f.
func (s *Schema[T]) set(c *T, f *Field, text string) error {
	return setValue(s.at(c, f), text)
}

func (s *Schema[T]) at(c *T, f *Field) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(f.index)
}

// copyField copies field f from src to dst.
func (s *Schema[T]) copyField(dst *T, src T, f *Field) {
	s.at(dst, f).Set(reflect.ValueOf(src).FieldByIndex(f.index))
}

// equal reports whether a and b agree in field f.
func (s *Schema[T]) equal(a, b T, f *Field) bool {
	return s.Text(a, f) == s.Text(b, f)
}

// find returns the field with that dotted key, or an error that suggests one.
func (s *Schema[T]) find(key string) (*Field, error) {
	if f := s.byKey[key]; f != nil {
		return f, nil
	}
	if s.groups[key] {
		return nil, fmt.Errorf("%s is a section, not a key; set one of its keys, as in %s.NAME=VALUE", key, key)
	}
	return nil, fmt.Errorf("unknown key %q%s", key, s.suggest(key))
}

// suggest returns "; did you mean X?" for the known key nearest to a dotted
// key, comparing whole keys and last parts, or "".
func (s *Schema[T]) suggest(key string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	var whole, tails []string
	byTail := map[string]string{}
	for _, f := range s.fields {
		whole = append(whole, f.Key)
		tail := f.Key[strings.LastIndexByte(f.Key, '.')+1:]
		tails = append(tails, tail)
		if byTail[tail] == "" {
			byTail[tail] = f.Key
		}
	}
	if near := wording.Nearest(last, tails); near != "" {
		return fmt.Sprintf("; did you mean %s?", byTail[near])
	}
	if near := wording.Nearest(key, whole); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
