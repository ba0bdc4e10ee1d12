package kerneltest

import "deeploop/internal/kernel"

// embed describes one Embed case. No sums: one or two roundings. The backward
// adds up to B*T numbers per row of the table.
type embed struct {
	B, T, prefix, d, puzzle, v int
	pos, accumulate            bool
}

var embedShapes = []embed{
	{B: 1, T: 1, d: 1, v: 2}, {B: 2, T: 9, d: 33, v: 12}, {B: 3, T: 5, prefix: 1, d: 16, puzzle: 16, v: 12, accumulate: true},
	{B: 2, T: 7, prefix: 2, d: 64, puzzle: 100, v: 12, pos: true}, {B: 2, T: 4, prefix: 3, d: 20, puzzle: 20, v: 5, pos: true, accumulate: true},
	{B: 2, T: 3, prefix: 2, d: 24, v: 5}, {B: 4, T: 25, d: 96, v: 12, pos: true}, {B: 3, T: 30, prefix: 1, d: 128, puzzle: 77, v: 12},
}

func embedCases() (all []Case) {
	for _, s := range embedShapes {
		all = append(all, s.forward(), s.backward())
	}
	return all
}

func (s embed) args(v Values) kernel.EmbedArgs {
	return kernel.EmbedArgs{Table: v.Buf("table"), Puzzle: v.Buf("puzzle"), Pos: v.Buf("pos"), IDs: v.Ints("ids"),
		Batch: s.B, T: s.T, Prefix: s.prefix, D: s.d, Vocab: s.v, PuzzleDim: s.puzzle, Scale: 5.656854249}
}

func (s embed) posLen() int {
	if s.pos {
		return (s.prefix + s.T) * s.d
	}
	return 0
}

func (s embed) String() string {
	return name("B%d T%d prefix%d D%d puzzle%d%s%s", s.B, s.T, s.prefix, s.d, s.puzzle, flag(s.pos, "pos"), flag(s.accumulate, "accumulate"))
}

func (s embed) forward() Case {
	return Case{
		Op: "Embed", Name: s.String(), Tol: Tolerance{3e-7, 1.0 / 256},
		Tensors: []Tensor{
			{Name: "table", Kind: Master, Len: s.v * s.d, Fill: normal(.1)}, {Name: "puzzle", Kind: Master, Len: s.B * s.puzzle, Fill: normal(.1)},
			{Name: "pos", Kind: Master, Len: s.posLen(), Fill: normal(.1)}, {Name: "ids", Kind: Int, Len: s.B * s.T, Fill: below(0, s.v)},
			{Name: "y", Role: Out, Len: s.B * (s.prefix + s.T) * s.d}},
		Call: func(b kernel.Backend, v Values) { b.Embed(v.Buf("y"), s.args(v)) },
	}
}

func (s embed) backward() Case {
	role := Out
	if s.accumulate {
		role = InOut
	}
	return Case{
		Op: "EmbedBackward", Name: s.String(), Tol: Tolerance{3e-6, 3e-6},
		Tensors: []Tensor{
			{Name: "dTable", Kind: Master, Role: role, Len: s.v * s.d, Fill: normal(1)}, {Name: "dPuzzle", Kind: Master, Role: Out, Len: s.B * s.puzzle},
			{Name: "dPos", Kind: Master, Role: role, Len: s.posLen(), Fill: normal(1)}, {Name: "ids", Kind: Int, Len: s.B * s.T, Fill: below(0, s.v)},
			{Name: "dy", Len: s.B * (s.prefix + s.T) * s.d, Fill: normal(1)}},
		Call: func(b kernel.Backend, v Values) {
			b.EmbedBackward(v.Buf("dTable"), v.Buf("dPuzzle"), v.Buf("dPos"), v.Buf("dy"), s.args(v), s.accumulate)
		},
	}
}
