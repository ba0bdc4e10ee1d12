package command

import "deeploop/internal/train"

// rounds is what follows from other arithmetic.
const rounds = "the sums round otherwise, so from here on the bits are not those of a run that was never changed"

// MayChange are the keys that a resumed run of any program may have otherwise
// than before, with those of the program. data_path is compared by what the
// dataset holds.
func MayChange(more ...train.Change) []train.Change {
	return append([]train.Change{
		{Key: "data_path"}, {Key: "keep"}, {Key: "checkpoint_interval"},
		{Key: "steps", Follows: "the rate follows the other schedule from here on"},
		{Key: "threads", Follows: rounds},
		{Key: "kernel", Follows: rounds},
		{Key: "eval_steps", Follows: "evaluations come at other steps from here on"},
	}, more...)
}
