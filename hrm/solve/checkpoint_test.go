package solve

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
)

// trained saves a fresh model as a checkpoint, with task embeddings of 1 and 3,
// and opens it.
func trained(t *testing.T, change func(*hrm.TrainConfig)) (*hrm.Model, *checkpoint.Reader) {
	t.Helper()
	c := tiny(1).Train
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = 64, 12, 3
	if change != nil {
		change(&c)
	}
	m, err := hrm.NewModel(c.Arch, kernel.Float32, 5)
	require.NoError(t, err)
	for i := range m.PuzzleTable.Len() {
		m.PuzzleTable.SetAt(i, float64(2*(i/c.Arch.PuzzleEmbDim)-1)) // -1, 1, 3
	}
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var set checkpoint.Set
	for _, p := range m.Params() {
		set.Tensor(checkpoint.Weights, p.Name, p.Shape(), p.Data)
	}
	d := c.Arch.HiddenSize
	set.Tensor(checkpoint.Weights, "H_init", []int{d}, m.HInit)
	set.Tensor(checkpoint.Weights, "L_init", []int{d}, m.LInit)
	if c.Arch.PuzzleEmbDim > 0 {
		set.Tensor(checkpoint.TaskEmbeddings, "puzzle_emb.weights", []int{3, c.Arch.PuzzleEmbDim}, m.PuzzleTable)
	}
	store := checkpoint.Store{Dir: filepath.Join(t.TempDir(), "checkpoints")}
	ref, err := store.Save(7, checkpoint.Meta{Kind: hrm.Kind, Config: raw}, &set)
	require.NoError(t, err)
	ck, err := checkpoint.Open(store.Path(ref))
	require.NoError(t, err)
	t.Cleanup(func() { ck.Close() })
	return m, ck
}

// A model from a checkpoint has its weights, and embeddings for the task's
// views: the mean of the trained ones, the blank one's left out, or zeros. By
// default only they learn.
func TestFitFromACheckpoint(t *testing.T) {
	want, reader := trained(t, nil)
	ck, err := NewCheckpoint(reader, "")
	require.NoError(t, err)
	require.Equal(t, 8, ck.Side)
	p := NewProblem(sample(t, "halo"))
	for _, c := range []struct {
		init  string
		value float64
		all   bool
	}{{InitMean, 2, false}, {InitZeros, 0, true}} {
		settings := tiny(3)
		settings.Train.Arch, settings.Init, settings.AllWeights = ck.Config.Arch, c.init, c.all
		s := solver(t, settings)
		s.Checkpoint = ck
		plan, err := s.plan(p, func(State) {})
		require.NoError(t, err)
		r, err := plan.fit(0)
		require.NoError(t, err)
		m := r.learner.Model
		require.Equal(t, (1+len(r.views))*m.Config.PuzzleEmbDim, m.PuzzleTable.Len())
		for i := range m.PuzzleTable.Len() {
			require.Equal(t, c.value, m.PuzzleTable.At(i))
		}
		same := func() (n int) {
			for i, w := range m.Params() {
				if string(w.Data.Bytes()) == string(want.Params()[i].Data.Bytes()) {
					n++
				}
			}
			return n
		}
		require.Equal(t, len(m.Params()), same())
		require.NoError(t, r.train(t.Context()))
		if c.all {
			require.Less(t, same(), len(m.Params()))
		} else {
			require.Equal(t, len(m.Params()), same(), "frozen")
		}
		moved := false
		for i := m.Config.PuzzleEmbDim; i < m.PuzzleTable.Len(); i++ {
			moved = moved || m.PuzzleTable.At(i) != c.value
		}
		require.True(t, moved)
		require.NoError(t, r.vote(t.Context()))
		require.Equal(t, 8, r.answers.Side)
		r.learner.Segment.Close()
	}
}

func TestCheckpointsThatDoNotFit(t *testing.T) {
	for want, change := range map[string]func(*hrm.TrainConfig){
		"its vocabulary has 5 tokens, ARC needs 12": func(c *hrm.TrainConfig) { c.Arch.VocabSize = 5 },
		"sequences of 60 tokens are no square":      func(c *hrm.TrainConfig) { c.Arch.SeqLen = 60 },
		"no task embeddings":                        func(c *hrm.TrainConfig) { c.Arch.PuzzleEmbDim = 0 },
	} {
		_, reader := trained(t, change)
		_, err := NewCheckpoint(reader, "")
		require.ErrorContains(t, err, want)
		var bad interface{ BadInput() bool }
		require.ErrorAs(t, err, &bad)
	}
	_, reader := trained(t, nil)
	ck, err := NewCheckpoint(reader, "")
	require.NoError(t, err)
	big := arc.NewGrid(9, 2)
	s := solver(t, tiny(1))
	s.Checkpoint = ck
	_, err = s.Solve(t.Context(), NewProblem(&arc.Task{ID: "big", Train: []arc.Pair{{Input: big, Output: big}}, Test: []arc.Pair{{Input: big}}}), nil)
	require.ErrorContains(t, err, "solve big: it needs a 9x9 canvas, the checkpoint was trained on 8x8 ones")
}
