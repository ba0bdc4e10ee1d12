package check

import (
	"errors"
	"fmt"
)

// MemoryError is a model that does not fit into the machine's memory.
type MemoryError struct {
	What       string  // what needs it
	Need, Have float64 // bytes
	Advice     string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs at least %s of memory, this machine has %s; %s", e.What, gigabytes(e.Need), gigabytes(e.Have), e.Advice)
}

// BadInput marks the error as the user's, for exit code 2.
func (e *MemoryError) BadInput() bool { return true }

func gigabytes(bytes float64) string { return fmt.Sprintf("%.3g GB", bytes/1e9) }

// Fits returns a *MemoryError when what needs more bytes than the machine has
// (0: unknown, everything fits).
func Fits(what string, need float64, have uint64, advice string) error {
	if have == 0 || need <= float64(have) {
		return nil
	}
	return &MemoryError{What: what, Need: need, Have: float64(have), Advice: advice}
}

// TrainingBytes is what training takes at least: weights and two moments, with
// an average of the weights one copy more, gradients, and the tape that the
// backward pass reads. Gradients that are fresh in every run of one graph are
// born where the tape dies: of those two the larger counts.
func TrainingBytes(weights, tape float64, average, fresh bool) float64 {
	copies := 3 * weights
	if average {
		copies += weights
	}
	if fresh {
		return copies + max(weights, tape)
	}
	return copies + weights + tape
}

// Halved returns the first of batch, batch/2, batch/4 and so on that fits, 0
// where not even a batch of 1 does.
func Halved(batch int, fits func(batch int) bool) int {
	for ; batch > 0 && !fits(batch); batch /= 2 {
	}
	return batch
}

// Advise gives a *MemoryError the advice of a command whose flags are not the
// configuration's keys. Other errors stay as they are.
func Advise(err error, advice string) error {
	var memory *MemoryError
	if errors.As(err, &memory) {
		memory.Advice = advice
	}
	return err
}
