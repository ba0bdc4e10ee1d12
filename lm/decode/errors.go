package decode

import (
	"errors"
	"fmt"
)

// ErrStop ends a completion without an error when emit returns it.
var ErrStop = errors.New("decode: stop")

// InputError is a request that a model cannot serve: too long, ids that do
// not exist, settings out of range.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

// BadInput tells the command line that the input is at fault.
func (e *InputError) BadInput() bool { return true }

func inputErrorf(format string, args ...any) error {
	return &InputError{fmt.Sprintf(format, args...)}
}

// errBroken is what logits without a distribution lead to.
var errBroken = errors.New("the model gave logits that are not finite; the checkpoint is damaged or its training diverged")
