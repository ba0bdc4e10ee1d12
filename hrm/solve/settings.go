package solve

import (
	"time"

	"deeploop/hrm"
	"deeploop/internal/check"
)

// Settings decide, with the task and the speed of the machine, what is
// answered. With Train.Steps set and no Limit the speed has no part in it.
type Settings struct {
	// Train is model, optimizer and seed. GlobalBatchSize is for canvases of up
	// to batchTokens; larger ones get fewer rows (see Settings.batch). Keys
	// about datasets, evaluations and checkpoints are not used.
	Train hrm.TrainConfig `json:"train"`
	// Limit is the time for a task, from building the model to the last vote;
	// 0 is none. Train.Steps, where not 0, ends the training earlier.
	Limit time.Duration `json:"limit"`

	// Models is how many are trained at most, one after the other and from seeds
	// of their own, each for its part of Limit or for Train.Steps; all vote. One
	// that knows no treatment's demonstrations by then has the next part too.
	Models int `json:"models"`

	// Colors are the treatments of colours that get identifiers; see Treatment.
	Colors []string `json:"colors"`
	// Turns says that all eight dihedral transforms are used.
	Turns bool `json:"turns"`
	// Copies is the number of fixed random copies, as the dataset builder draws
	// them, that get an identifier each.
	Copies int `json:"copies"`
	// Margin is how much wider the canvas is than the task's largest grid.
	Margin int `json:"margin"`
	// FixedBatch says that Train.GlobalBatchSize holds for all canvases.
	FixedBatch bool `json:"fixed_batch"`

	// Votes is the number of augmented copies of each test input that vote.
	Votes int `json:"votes"`
	// SizeRule reads answers at the size that all demonstrations imply, where
	// they do, and drops those that have none.
	SizeRule bool `json:"size_rule"`

	// AllWeights fits all weights of a checkpoint, not only task embeddings.
	AllWeights bool `json:"all_weights"`
	// Init is how the embeddings of new identifiers start with a checkpoint:
	// InitMean or InitZeros.
	Init string `json:"init"`
}

// Values of Settings.Init.
const (
	InitMean  = "mean"  // the mean of the checkpoint's task embeddings
	InitZeros = "zeros" // as at the start of a training
)

// Defaults are what answered most small training tasks of ARC-AGI-1 in trials
// (RESULTS.md): a narrow model with one call of each module and one segment, a
// high rate, every treatment of colours, and three models.
func Defaults() Settings {
	c := hrm.PresetLaptop()
	c.Arch.HiddenSize, c.Arch.PuzzleEmbDim = 64, 64
	c.Arch.HaltMaxSteps = 1
	c.LR, c.Steps = 3e-3, 0
	return Settings{
		Train: c, Models: 3, Colors: []string{string(Keep), string(Free), string(Any)}, Turns: true,
		Votes: 400, SizeRule: true, Init: InitMean,
	}
}

// Check reports the first value that cannot work.
func (s Settings) Check() error {
	if err := s.Train.Validate(); err != nil {
		return err
	}
	var k check.Checks
	for _, c := range s.Colors {
		k.OneOf("colors", c, string(Keep), string(Free), string(Any))
	}
	if len(s.Colors) == 0 && s.Copies == 0 {
		k.Fail("colors", "empty", "one of keep, free, any, or copies of at least 1")
	}
	k.Whole("models", s.Models, 1, 1000)
	k.Whole("copies", s.Copies, 0, 100000)
	k.Whole("margin", s.Margin, 0, 29)
	k.Whole("votes", s.Votes, 1, 1000000)
	k.OneOf("init", s.Init, InitMean, InitZeros)
	if s.Limit < 0 || s.Limit == 0 && s.Train.Steps == 0 {
		k.Fail("minutes", s.Limit.Minutes(), "a time above 0, or a number of steps")
	}
	return k.Err
}

// batchTokens is how many cells a batch has at most unless FixedBatch: on large
// canvases many small steps learn more than few large ones.
const batchTokens = 3200

// batch returns the rows per step on canvases of the given side.
func (s Settings) batch(side int) int {
	n := s.Train.GlobalBatchSize
	if s.FixedBatch {
		return n
	}
	return min(n, max(4, batchTokens/(side*side)))
}
