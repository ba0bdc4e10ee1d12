package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"deeploop/internal/cli"
)

// BenchOptions are the flags that benchmarks of all models have.
type BenchOptions struct {
	Preset        string
	Compute       Compute
	Steps         int
	Seconds       float64
	Profile, JSON bool
	flags         *pflag.FlagSet
}

// AddFlags registers the flags of arithmetic, measurement and output, after
// those of the configuration.
func (o *BenchOptions) AddFlags(f *pflag.FlagSet) {
	o.Compute.AddFlags(f, "auto")
	f.IntVar(&o.Steps, "steps", 10000, "training `N` steps: how long they would take is printed, and no more are timed")
	f.Float64Var(&o.Seconds, "seconds", 15, "measure for about so many seconds, at least three steps; two thirds for training")
	f.BoolVar(&o.Profile, "profile", false, "where the time goes: every kernel, and what is left for graph and Go")
	f.BoolVar(&o.JSON, "json", false, "print a JSON document and nothing else")
	o.flags = f
}

// Given reports whether the command line has a flag.
func (o *BenchOptions) Given(flag string) bool { return o.flags.Changed(flag) }

// Check refuses values that cannot work.
func (o *BenchOptions) Check() error {
	switch {
	case o.Steps < 1:
		return cli.Usagef("--steps is %d, expected at least 1", o.Steps)
	case !(o.Seconds > 0 && o.Seconds <= 1e6):
		return cli.Usagef("--seconds is %v, expected a number above 0", o.Seconds)
	}
	return nil
}

// KeyFlag is a flag that sets keys of a configuration T. One of Whole, Word
// and On is set, and says what the flag takes.
type KeyFlag[T any] struct {
	Flag, Help string
	Whole      func(c *T, v int)
	Word       func(c *T, v string)
	On         func(c *T, v bool)
	Keys       []string // that it sets, for messages about them
}

// KeyFlags are the flags of a benchmark's configuration with their values.
type KeyFlags[T any] struct {
	list   []KeyFlag[T]
	whole  []int
	word   []string
	on     []bool
	chosen map[string]string // flag that set a key
}

// NewKeyFlags registers the flags. Without one of them the preset counts.
func NewKeyFlags[T any](f *pflag.FlagSet, list []KeyFlag[T]) *KeyFlags[T] {
	k := &KeyFlags[T]{list: list, whole: make([]int, len(list)), word: make([]string, len(list)), on: make([]bool, len(list))}
	for i, x := range list {
		switch {
		case x.Whole != nil:
			f.IntVar(&k.whole[i], x.Flag, 0, x.Help)
		case x.Word != nil:
			f.StringVar(&k.word[i], x.Flag, "", x.Help)
		default:
			f.BoolVar(&k.on[i], x.Flag, false, x.Help)
		}
	}
	return k
}

// Apply sets what the command line gives.
func (k *KeyFlags[T]) Apply(c *T, given func(flag string) bool) {
	k.chosen = map[string]string{}
	for i, x := range k.list {
		if !given(x.Flag) {
			continue
		}
		switch {
		case x.Whole != nil:
			x.Whole(c, k.whole[i])
		case x.Word != nil:
			x.Word(c, k.word[i])
		default:
			x.On(c, k.on[i])
		}
		for _, key := range x.Keys {
			k.chosen[key] = "--" + x.Flag
		}
	}
}

// Chosen reports whether a flag set the key.
func (k *KeyFlags[T]) Chosen(key string) bool { return k.chosen[key] != "" }

// Explain adds to an error about a key the flag that set it.
func (k *KeyFlags[T]) Explain(err error) error {
	var about interface{ ConfigKey() string }
	if errors.As(err, &about) && k.Chosen(about.ConfigKey()) {
		return fmt.Errorf("%w (chosen at %s)", err, k.chosen[about.ConfigKey()])
	}
	return err
}
