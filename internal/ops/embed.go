package ops

import (
	"deeploop/internal/graph"
	"deeploop/internal/kernel"
)

// Embedding describes the input of a model: token table, optional puzzle
// rows before the tokens, optional learned positions.
type Embedding struct {
	Table  *graph.Param // [V, D]
	Puzzle *graph.Param // [B, PuzzleDim], one row per batch row; nil without
	Pos    *graph.Param // [Prefix+T, D]; nil without learned positions
	// IDs are the tokens, B*T of them, read at every run.
	IDs              []int32
	Batch, T, Prefix int
	Scale            float64
}

// Embed is x[B*(Prefix+T), D], see kernel.EmbedArgs (architectures.md G.1).
func Embed(b *graph.Builder, e Embedding) *graph.Node {
	a := kernel.EmbedArgs{
		Table: e.Table.Data, IDs: e.IDs, Batch: e.Batch, T: e.T, Prefix: e.Prefix,
		D: e.Table.Cols, Vocab: e.Table.Rows, Scale: e.Scale,
	}
	params := []*graph.Param{e.Table}
	if e.Puzzle != nil {
		a.Puzzle, a.PuzzleDim = e.Puzzle.Data, e.Puzzle.Cols
		params = append(params, e.Puzzle)
	}
	if e.Pos != nil {
		a.Pos = e.Pos.Data
		params = append(params, e.Pos)
	}
	in := make([]*graph.Node, len(params))
	diff := make([]bool, len(params))
	targets := make([]*graph.GradBuf, len(params))
	for i, p := range params {
		in[i], diff[i], targets[i] = b.Use(p), true, b.Target(p)
	}
	be := b.Backend
	return b.Apply(graph.Spec{
		Name: "embed", In: in, Type: b.Act, Rows: e.Batch * (e.Prefix + e.T), Cols: a.D, Diff: diff,
		Forward: func(x kernel.Buf, _ []kernel.Buf) { be.Embed(x, a) },
		Backward: func(_, dx *graph.Node) []*graph.Node {
			run := b.Token("embed.backward", []*graph.Node{dx}, func(in []kernel.Buf) {
				accumulate := targets[0].Touch() // table and positions go together
				for _, g := range targets[1:] {
					g.Touch()
				}
				var dPuzzle, dPos kernel.Buf
				if e.Puzzle != nil {
					dPuzzle = targets[1].Buf
				}
				if e.Pos != nil {
					dPos = targets[len(targets)-1].Buf
				}
				be.EmbedBackward(targets[0].Buf, dPuzzle, dPos, in[0], a, accumulate)
			}, targets...)
			grads := make([]*graph.Node, len(params))
			for i := range grads {
				grads[i] = run
			}
			return grads
		},
	})
}
