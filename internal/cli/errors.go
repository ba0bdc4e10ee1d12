// Package cli is what the two programs share above their libraries: exit
// codes, kinds of error, streams, and configuration as files and flags.
package cli

import (
	"errors"
	"fmt"
)

// Exit codes of both programs.
const (
	ExitOK          = 0
	ExitFailure     = 1   // something went wrong while running
	ExitUsage       = 2   // bad flags, bad input files, a refused request
	ExitInterrupted = 130 // stopped by Ctrl-C, after saving
)

// exitCodes says so in the help.
const exitCodes = "Exit codes: 0 done, 1 something failed, 2 wrong flags or bad input (nothing was\nwritten), 130 stopped by Ctrl-C, after saving where there is something to save.\n"

// UsageError is a mistake of the caller: wrong flags or bad input. It ends the
// program with ExitUsage and no stack trace.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef formats a UsageError; %w wraps.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ErrInterrupted reports a clean stop on a signal.
var ErrInterrupted = errors.New("interrupted")

// InputError marks a bad-input error: any error type with a BadInput method
// (arc, augment and voting define their own, so they need not import cli).
type InputError interface{ BadInput() bool }

// ExitCode maps an error to the exit code.
func ExitCode(err error) int {
	var u *UsageError
	var in InputError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &u):
		return ExitUsage
	case errors.As(err, &in) && in.BadInput():
		return ExitUsage
	}
	return ExitFailure
}
