package hrm

import (
	"encoding/json"
	"fmt"

	"deeploop/augment"
	"deeploop/internal/ops"
	"deeploop/internal/rng"
)

// IgnoreLabel marks label positions that are not counted.
const IgnoreLabel = ops.IgnoreLabel

// LoaderConfig says how training batches are drawn.
type LoaderConfig struct {
	// Seed and the pass number, from 1, seed the Philox stream that orders the
	// groups and picks a copy of each.
	Seed uint64
	// LegacySeed seeds numpy's legacy stream, which orders the examples inside
	// a puzzle. The reference leaves it to PyTorch's base seed; our trainer
	// gives the low 32 bits of Seed.
	LegacySeed uint32
	// BatchSize is the number of rows.
	BatchSize int
	// EpochsPerPass is the number of times a pass goes over all groups (the
	// reference's epochs_per_iter).
	EpochsPerPass int
}

// TrainLoader draws training batches without end, with the reference's draws
// in the reference's order (sapientinc/HRM, puzzle_dataset.py): a pass
// concatenates EpochsPerPass permutations of the groups; each group in turn
// gives one random puzzle, whose examples are appended in random order until
// the batch is full. The examples of a puzzle that a batch boundary cuts off
// are lost for this pass, and so is a last batch that is not full.
type TrainLoader struct {
	split  *augment.Split
	config LoaderConfig

	pass    uint64      // 0 before the first batch
	start   int         // next entry of order
	order   []int32     // groups of this pass
	groups  *rng.Philox // of this pass
	legacy  *rng.Legacy
	drawn   int // batches of this pass
	reader  rowReader
	choice  []int32
	example []int32 // of the last batch
	puzzle  []int32
}

// NewTrainLoader returns a loader at its beginning.
func NewTrainLoader(split *augment.Split, c LoaderConfig) (*TrainLoader, error) {
	switch {
	case c.BatchSize < 1:
		return nil, fmt.Errorf("load batches: the batch size is %d, expected 1 or more", c.BatchSize)
	case c.EpochsPerPass < 1:
		return nil, fmt.Errorf("load batches: %d epochs per pass, expected 1 or more", c.EpochsPerPass)
	case split.Examples() == 0:
		return nil, fmt.Errorf("load batches: the %s split has no examples", split.Name)
	}
	return &TrainLoader{
		split: split, config: c, legacy: rng.NewLegacy(c.LegacySeed),
		reader:  newRowReader(split),
		example: make([]int32, 0, c.BatchSize), puzzle: make([]int32, 0, c.BatchSize),
	}, nil
}

// Next draws a batch into dst [BatchSize rows of SeqLen tokens] and returns
// the number of the pass it belongs to.
func (l *TrainLoader) Next(dst Rows) (pass uint64, err error) {
	for !l.sample() {
		if l.pass > 0 && l.drawn == 0 {
			return 0, fmt.Errorf("load batches: %d epochs of %d groups gave no full batch of %d rows; use a smaller global_batch_size, more epochs, or a larger dataset",
				l.config.EpochsPerPass, l.split.Groups(), l.config.BatchSize)
		}
		l.begin(l.pass + 1)
	}
	l.drawn++
	for i, e := range l.example {
		if err := l.reader.read(dst, i, int(e), int(l.puzzle[i])); err != nil {
			return 0, err
		}
	}
	return l.pass, nil
}

// begin starts a pass.
func (l *TrainLoader) begin(pass uint64) {
	l.pass, l.start, l.drawn = pass, 0, 0
	l.groups = rng.NewPhilox(l.config.Seed + pass)
	n := l.split.Groups()
	if l.order == nil {
		l.order = make([]int32, n*l.config.EpochsPerPass)
	}
	for at := 0; at < len(l.order); at += n {
		l.groups.Perm(l.order[at : at+n])
	}
}

// sample chooses the examples of a batch; false means that the pass is over.
func (l *TrainLoader) sample() bool {
	l.example, l.puzzle = l.example[:0], l.puzzle[:0]
	s := l.split
	if l.groups == nil {
		return false
	}
	for l.start < len(l.order) && len(l.example) < l.config.BatchSize {
		g := l.order[l.start]
		l.start++
		p := s.GroupIndices[g] + int32(l.groups.Intn(int(s.GroupIndices[g+1]-s.GroupIndices[g])))
		first := s.PuzzleIndices[p]
		n := int(s.PuzzleIndices[p+1] - first)
		if cap(l.choice) < n {
			l.choice = make([]int32, n)
		}
		for _, e := range l.legacy.Choice(n, min(n, l.config.BatchSize-len(l.example)), l.choice) {
			l.example = append(l.example, first+e)
			l.puzzle = append(l.puzzle, p)
		}
	}
	return len(l.example) == l.config.BatchSize
}

// LoaderState is a loader's place between two batches.
type LoaderState struct {
	Pass    uint64 `json:"pass"`
	Start   int    `json:"start_index"`
	Batches int    `json:"batches_in_pass"`
	Groups  []byte `json:"philox,omitempty"`
	Legacy  []byte `json:"mt19937"`
}

// State returns the loader's place.
func (l *TrainLoader) State() LoaderState {
	s := LoaderState{Pass: l.pass, Start: l.start, Batches: l.drawn}
	s.Legacy, _ = l.legacy.MarshalBinary() // never fails
	if l.groups != nil {
		s.Groups, _ = l.groups.MarshalBinary()
	}
	return s
}

// Restore moves the loader to a place that a loader of the same dataset and
// configuration was at; the batches that follow are the same.
func (l *TrainLoader) Restore(s LoaderState) error {
	legacy := new(rng.Legacy)
	if err := legacy.UnmarshalBinary(s.Legacy); err != nil {
		return fmt.Errorf("restore loader: %w", err)
	}
	if s.Pass == 0 {
		l.pass, l.start, l.drawn, l.groups, l.legacy = 0, 0, 0, nil, legacy
		return nil
	}
	groups := new(rng.Philox)
	if err := groups.UnmarshalBinary(s.Groups); err != nil {
		return fmt.Errorf("restore loader: %w", err)
	}
	if n := l.split.Groups() * l.config.EpochsPerPass; s.Start < 0 || s.Start > n {
		return fmt.Errorf("restore loader: its place is %d of %d groups; was it saved with this dataset and configuration?", s.Start, n)
	}
	if key := rng.NewPhilox(l.config.Seed + s.Pass).Key(); groups.Key() != key {
		return fmt.Errorf("restore loader: it was saved with another seed than %d", l.config.Seed)
	}
	l.begin(s.Pass) // the order of groups follows from the seed
	l.start, l.drawn, l.groups, l.legacy = s.Start, s.Batches, groups, legacy
	return nil
}

// MarshalJSON encodes State, so that a checkpoint can hold the loader itself.
func (l *TrainLoader) MarshalJSON() ([]byte, error) { return json.Marshal(l.State()) }

// UnmarshalJSON restores a State.
func (l *TrainLoader) UnmarshalJSON(b []byte) error {
	var s LoaderState
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("restore loader: %w", err)
	}
	return l.Restore(s)
}

// rowReader copies rows of a split into a batch.
type rowReader struct {
	split         *augment.Split
	input, labels []byte // scratch
}

func newRowReader(split *augment.Split) rowReader {
	return rowReader{split: split, input: make([]byte, split.SeqLen), labels: make([]byte, split.SeqLen)}
}

// read puts an example of a puzzle into row i of dst.
func (r *rowReader) read(dst Rows, i, example, puzzle int) error {
	in, err := r.split.Inputs.Row(example, r.input)
	if err != nil {
		return err
	}
	out, err := r.split.Labels.Row(example, r.labels)
	if err != nil {
		return err
	}
	t := r.split.SeqLen
	inputs, labels := dst.Inputs[i*t:(i+1)*t], dst.Labels[i*t:(i+1)*t]
	vocab := r.split.VocabSize
	for j, v := range in {
		inputs[j] = int32(v)
		if int(v) >= vocab || int(out[j]) >= vocab {
			return fmt.Errorf("read example %d of the %s split: token %d or label %d at %d, expected less than %d; check the dataset with hrm build-data --verify",
				example, r.split.Name, v, out[j], j, vocab)
		}
	}
	for j, v := range out {
		labels[j] = int32(v)
		if v == augment.PadToken {
			labels[j] = IgnoreLabel
		}
	}
	dst.IDs[i] = r.split.PuzzleIdentifiers[puzzle]
	return nil
}
