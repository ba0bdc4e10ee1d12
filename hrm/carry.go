package hrm

import (
	"math/rand/v2"

	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Rows is a batch as the loader gives it: Inputs and Labels [B*T] (labels
// negative where not counted), IDs [B] task identifiers, 0 for a padding row.
type Rows struct {
	Inputs, Labels, IDs []int32
}

// NewRows allocates a batch of b rows of t tokens.
func NewRows(b, t int) Rows {
	return Rows{Inputs: make([]int32, b*t), Labels: make([]int32, b*t), IDs: make([]int32, b)}
}

func (r Rows) copyRow(i, t int, from Rows) {
	copy(r.Inputs[i*t:(i+1)*t], from.Inputs[i*t:(i+1)*t])
	copy(r.Labels[i*t:(i+1)*t], from.Labels[i*t:(i+1)*t])
	r.IDs[i] = from.IDs[i]
}

// Carry is what passes from one training step to the next for every slot of
// the batch (architectures.md G.2): the example it works on, how many segments
// it has had, and whether it has halted. The states z_H and z_L are the
// Segment's.
type Carry struct {
	Current Rows
	Steps   []int32
	Halted  []bool
}

// NewCarry returns a carry in which every slot waits for an example.
func NewCarry(b, t int) *Carry {
	c := &Carry{Current: NewRows(b, t), Steps: make([]int32, b), Halted: make([]bool, b)}
	for i := range c.Halted {
		c.Halted[i] = true
	}
	return c
}

// refill gives halted slots a new example from offered and reset states. The
// rows offered to slots that still work are dropped, as in the reference.
func (c *Carry) refill(s *Segment, offered Rows) {
	t := s.Model.Config.SeqLen
	for i, h := range c.Halted {
		if h {
			c.Current.copyRow(i, t, offered)
			c.Steps[i] = 0
			s.resetState(i)
		}
	}
}

// resetState sets the states of row i to the model's initial vectors, the same
// at every position.
func (s *Segment) resetState(i int) {
	d := s.Model.Config.HiddenSize
	row := s.Model.Config.Positions() * d
	for _, z := range []struct{ state, init kernel.Buf }{{s.ZH, s.Model.HInit}, {s.ZL, s.Model.LInit}} {
		s.backend.Convert(z.state.Slice(i*row, i*row+d), z.init)
		bytes := z.state.Slice(i*row, (i+1)*row).Bytes()
		for done := len(bytes) / s.Model.Config.Positions(); done < len(bytes); done *= 2 {
			copy(bytes[done:], bytes[:done])
		}
	}
}

// load puts rows into the segment's inputs: tokens, labels (the task slots in
// front are not counted) and task embeddings.
func (s *Segment) load(r Rows) {
	c := s.Model.Config
	t, p := c.SeqLen, c.PuzzleEmbLen()
	copy(s.Tokens, r.Inputs)
	for i := range s.Batch {
		row := s.Loss.Labels[i*(p+t) : (i+1)*(p+t)]
		for j := range p {
			row[j] = ops.IgnoreLabel
		}
		copy(row[p:], r.Labels[i*t:(i+1)*t])
	}
	if s.Puzzle != nil {
		nd := c.PuzzleEmbDim
		for i, id := range r.IDs {
			s.backend.Convert(s.Puzzle.Data.Slice(i*nd, (i+1)*nd), s.Model.puzzleRow(id))
		}
	}
}

// puzzleRow is the embedding of one task identifier.
func (m *Model) puzzleRow(id int32) kernel.Buf {
	nd := m.Config.PuzzleEmbDim
	return m.PuzzleTable.Slice(int(id)*nd, (int(id)+1)*nd)
}

// halt decides which slots halt after a training segment, from the q logits in
// s.Q: a slot halts on its last allowed segment, or when q_halt > q_continue
// (q_halt > 0 with no_ACT_continue); with exploration (probability prob, drawn for every slot at every step) only
// from a drawn minimum in {2..max} on, which binds the last segment too, as in
// the reference.
func (c *Carry) halt(s *Segment, prob float64, draw *rand.Rand) {
	config := s.Model.Config
	most := int32(config.HaltMaxSteps)
	for i := range c.Halted {
		last := c.Steps[i] >= most
		c.Halted[i] = last
		if most <= 1 {
			continue
		}
		c.Halted[i] = last || config.Halts(s.Q.QHalt[i], s.Q.QContinue[i])
		explore, atLeast := draw.Float64() < prob, 2+draw.Int32N(most-1)
		if explore && c.Steps[i] < atLeast {
			c.Halted[i] = false
		}
	}
}
