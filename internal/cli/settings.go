package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Settings collects what a command line says about a configuration: a file,
// --set key=value, and one flag per key. Resolve then applies them on top of
// a preset: preset < file < command line, in the order written.
type Settings[T any] struct {
	*Schema[T]
	// Foreign names keys of other programs, with what to do instead.
	Foreign map[string]string
	// Skip names keys of other programs that files may have and that change
	// nothing here. With it a file may also have keys without a value, which
	// are as if they were not there.
	Skip map[string]bool
	// Follow, if set, adjusts keys that follow other keys unless chosen.
	Follow func(c *T, base T, chosen func(key string) bool)
	// File is the argument of --config.
	File string

	assigned []assignment
}

type assignment struct {
	field       *Field
	text, where string
}

// AddFlags registers --config, --set and a flag per key, in the group
// "configuration".
func (s *Settings[T]) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.File, "config", "", "YAML file with any of the configuration keys")
	fs.Var(setFlag[T]{s}, "set", "set a configuration key, as in arch.hidden_size=256 (repeatable)")
	for _, f := range s.fields {
		flag := fs.VarPF(&keyFlag[T]{s, f}, f.Flag, "", f.Help+" ["+f.Key+"]")
		if f.kind == kindBool {
			flag.NoOptDefVal = "true"
		}
		Group(fs, f.Flag, "Configuration")
	}
}

// keyFlag is the flag of one key.
type keyFlag[T any] struct {
	s *Settings[T]
	f *Field
}

func (k *keyFlag[T]) String() string { return "" }
func (k *keyFlag[T]) Type() string   { return k.f.kind.String() }
func (k *keyFlag[T]) Set(text string) error {
	return k.s.assign(k.f, text, "--"+k.f.Flag)
}

// setFlag is --set.
type setFlag[T any] struct{ s *Settings[T] }

func (setFlag[T]) String() string { return "" }
func (setFlag[T]) Type() string   { return "key=value" }
func (f setFlag[T]) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("found no \"=\", expected key=value")
	}
	if hint := f.s.Foreign[key]; hint != "" {
		return fmt.Errorf("%s is not a key here: %s", key, hint)
	}
	field, err := f.s.find(key)
	if err != nil {
		return err
	}
	return f.s.assign(field, value, "--set "+key)
}

func (s *Settings[T]) assign(f *Field, text, where string) error {
	var scratch T
	if strings.Contains(text, "${") {
		return fmt.Errorf("%s is %s: Hydra's ${...} is not understood here; write the value itself", f.Key, text)
	}
	if err := s.set(&scratch, f, text); err != nil {
		return fmt.Errorf("%s is %q, %w", f.Key, text, err)
	}
	s.assigned = append(s.assigned, assignment{f, text, where})
	return nil
}

// Resolved is a configuration with the places its keys were chosen at.
type Resolved[T any] struct {
	Value  T
	places map[string]string // dotted key -> "FILE:LINE" or "--flag"
}

// Chosen reports whether a dotted key was given by the file or the command
// line, rather than by the preset.
func (r *Resolved[T]) Chosen(key string) bool { return r.places[key] != "" }

// Explain adds to an error about one key where that key was chosen.
func (r *Resolved[T]) Explain(err error) error {
	var about interface{ ConfigKey() string }
	if !errors.As(err, &about) || r.places[about.ConfigKey()] == "" {
		return err
	}
	return fmt.Errorf("%w (chosen at %s)", err, r.places[about.ConfigKey()])
}

// Load sets the keys that a file names, such as one WriteYAML wrote.
func (s *Settings[T]) Load(path string, into *T) error {
	_, err := readConfigFile(s.Schema, s.Foreign, s.Skip, path, into)
	return err
}

// Resolve applies file and command line on top of base.
func (s *Settings[T]) Resolve(base T) (*Resolved[T], error) {
	r := &Resolved[T]{Value: base, places: map[string]string{}}
	if s.File != "" {
		lines, err := readConfigFile(s.Schema, s.Foreign, s.Skip, s.File, &r.Value)
		if err != nil {
			return nil, err
		}
		for key, line := range lines {
			r.places[key] = fmt.Sprintf("%s:%d", s.File, line)
		}
	}
	for _, a := range s.assigned {
		if err := s.set(&r.Value, a.field, a.text); err != nil {
			return nil, &UsageError{Err: err}
		}
		r.places[a.field.Key] = a.where
	}
	if s.Follow != nil {
		s.Follow(&r.Value, base, r.Chosen)
	}
	return r, nil
}
