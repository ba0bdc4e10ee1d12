package lm

import (
	"fmt"

	"deeploop/internal/rng"
)

// Tokens is a sequence of token ids, as a split of a dataset gives it.
type Tokens interface {
	Len() int64
	// Read fills dst with the ids from position at on.
	Read(dst []int32, at int64) error
}

// Place is where a Loader stands; it goes into checkpoints.
type Place struct {
	Epoch  int   `json:"epoch"`
	Window int64 `json:"window"` // next of the epoch
}

// Loader deals out training sequences. An epoch cuts the tokens into windows
// of T from a drawn offset on and takes each of them once, in a drawn order.
// Order and offset depend on the seed and the epoch alone, so a Place says all
// about what comes next.
type Loader struct {
	Place Place

	data   Tokens
	t      int
	seed   uint64
	epoch  int // that order and offset belong to, -1 before the first
	order  permutation
	offset int64
	row    []int32 // [T+1]
}

// NewLoader starts at the first epoch. It is an error when the data has not
// one window of t tokens and its labels.
func NewLoader(data Tokens, t int, seed uint64) (*Loader, error) {
	if data.Len() < int64(t)+1 {
		return nil, &ConfigError{Key: "arch.context", Found: t, Want: fmt.Sprintf("at most %d: the training split has %d tokens", max(data.Len()-1, 0), data.Len())}
	}
	return &Loader{data: data, t: t, seed: seed, epoch: -1, row: make([]int32, t+1)}, nil
}

// Next fills inputs and labels [B*T]; a label is the token after its input.
func (l *Loader) Next(inputs, labels []int32) error {
	for at := 0; at < len(inputs); at += l.t {
		start, err := l.window()
		if err != nil {
			return err
		}
		if err := l.data.Read(l.row, start); err != nil {
			return fmt.Errorf("read training tokens: %w", err)
		}
		copy(inputs[at:at+l.t], l.row)
		copy(labels[at:at+l.t], l.row[1:])
	}
	return nil
}

// window returns the first token of the next window.
func (l *Loader) window() (int64, error) {
	if l.Place.Epoch != l.epoch {
		l.begin()
	}
	if l.Place.Window < 0 || l.Place.Window >= l.order.n {
		return 0, fmt.Errorf("the place in the data is window %d of %d", l.Place.Window, l.order.n)
	}
	start := l.offset + int64(l.order.at(uint64(l.Place.Window)))*int64(l.t)
	l.Place.Window++
	if l.Place.Window == l.order.n {
		l.Place = Place{Epoch: l.Place.Epoch + 1}
	}
	return start, nil
}

func (l *Loader) begin() {
	l.epoch = l.Place.Epoch
	s := rng.NewStream(l.seed, fmt.Sprintf("data epoch %d", l.epoch))
	spare := l.data.Len() - 1 - int64(l.t) // tokens beyond one window
	l.offset = s.Int64N(min(spare, int64(l.t)-1) + 1)
	l.order = newPermutation(s, (l.data.Len()-1-l.offset)/int64(l.t))
}
