package checkpoint

import (
	"errors"
	"fmt"
)

// Error is a checkpoint that cannot be used as it is: broken, too new, or made
// for something else. It is bad input, not a failure of the program.
type Error struct {
	Err     error
	damaged bool
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput marks the error for the exit code.
func (e *Error) BadInput() bool { return true }

// Damaged reports whether err says that a checkpoint's files are broken or
// missing, so that another checkpoint may still serve.
func Damaged(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.damaged
}

func badf(format string, args ...any) error { return &Error{Err: fmt.Errorf(format, args...)} }

func damagedf(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), damaged: true}
}
