package augment

import (
	"deeploop/arc"
)

// Settings decide, with the tasks, every byte of a dataset.
type Settings struct {
	// NumAug is the number of augmented copies wanted per task.
	NumAug int `json:"num_aug"`
	// Seed starts numpy's legacy generator.
	Seed uint32 `json:"seed"`
	// MaxGrid is the side of the square canvas, 1 to 30; a sequence has
	// MaxGrid*MaxGrid tokens. Tasks with a larger grid are left out.
	MaxGrid int `json:"max_grid"`
	// DestOrder is TrainFirst or TestFirst: which split is drawn and written
	// first. The reference leaves it to Python's string hash.
	DestOrder string `json:"dest_order"`
	// Compress is "" or "zstd".
	Compress string `json:"compress"`
}

// Values of Settings.DestOrder.
const (
	TrainFirst = "train_first"
	TestFirst  = "test_first"
)

// Zstd is the value of Settings.Compress that writes .npy.zst files.
const Zstd = "zstd"

// Check reports the first bad value. An empty DestOrder is not accepted.
func (s Settings) Check() error {
	switch {
	case s.NumAug < 0:
		return inputErrorf("check settings: num-aug is %d, expected 0 or more", s.NumAug)
	case s.NumAug > 1_000_000:
		return inputErrorf("check settings: num-aug is %d, expected at most 1000000", s.NumAug)
	case s.MaxGrid < 1 || s.MaxGrid > arc.MaxSide:
		return inputErrorf("check settings: max-grid is %d, expected 1 to %d", s.MaxGrid, arc.MaxSide)
	case s.DestOrder != TrainFirst && s.DestOrder != TestFirst:
		return inputErrorf("check settings: dest-order is %q, expected %s or %s", s.DestOrder, TrainFirst, TestFirst)
	case s.Compress != "" && s.Compress != Zstd:
		return inputErrorf("check settings: compress is %q, expected nothing or %s", s.Compress, Zstd)
	}
	return nil
}
