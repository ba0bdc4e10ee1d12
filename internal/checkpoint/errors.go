package checkpoint

import "fmt"

// Error is a checkpoint that cannot be used as it is: broken, too new, or made
// for something else. It is bad input, not a failure of the program.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput marks the error for the exit code.
func (e *Error) BadInput() bool { return true }

func badf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
