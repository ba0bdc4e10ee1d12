// Package check is what commands check before they start: configuration
// values one by one, and memory.
package check

import (
	"fmt"
	"slices"
	"strings"
)

// Error is a configuration value that cannot work.
type Error struct {
	Key   string // dotted key as in the file, e.g. arch.num_heads
	Found any
	Want  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("check configuration: %s is %v, expected %s", e.Key, e.Found, e.Want)
}

// BadInput marks the error as the user's, for exit code 2.
func (e *Error) BadInput() bool { return true }

// ConfigKey returns the dotted key the error is about, for the file and line.
func (e *Error) ConfigKey() string { return e.Key }

// Checks keeps the first failure.
type Checks struct {
	// Prefix of keys, such as "arch."
	Prefix string
	Err    error
}

// Fail notes a value that cannot work.
func (k *Checks) Fail(key string, found any, want string) {
	if k.Err == nil {
		k.Err = &Error{Key: k.Prefix + key, Found: found, Want: want}
	}
}

// Whole asks for a whole number from lo to hi.
func (k *Checks) Whole(key string, v, lo, hi int) {
	if v < lo || v > hi {
		k.Fail(key, v, fmt.Sprintf("a whole number from %d to %d", lo, hi))
	}
}

// Real asks for a number from lo to hi.
func (k *Checks) Real(key string, v, lo, hi float64) {
	if !(v >= lo && v <= hi) {
		k.Fail(key, v, fmt.Sprintf("a number from %g to %g", lo, hi))
	}
}

// Positive asks for a number above 0 and at most hi.
func (k *Checks) Positive(key string, v, hi float64) {
	if !(v > 0 && v <= hi) {
		k.Fail(key, v, fmt.Sprintf("a number above 0 and at most %g", hi))
	}
}

// Below asks for a number from 0 to below hi.
func (k *Checks) Below(key string, v, hi float64) {
	if !(v >= 0 && v < hi) {
		k.Fail(key, v, fmt.Sprintf("a number from 0 to below %g", hi))
	}
}

// OneOf asks for one of the allowed words.
func (k *Checks) OneOf(key, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		k.Fail(key, fmt.Sprintf("%q", v), "one of "+strings.Join(allowed, ", "))
	}
}
