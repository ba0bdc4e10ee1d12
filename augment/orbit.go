package augment

import (
	"math/bits"

	"deeploop/arc"
)

// fingerprint identifies a task under an augmentation up to the order of its
// pairs and their section, which is what the reference compares when it drops
// duplicates. It is 128 bits, so equal fingerprints mean equal tasks for all
// practical purposes.
type fingerprint [2]uint64

// orbit computes fingerprints of all augmentations of one task without
// touching its cells again: a grid's hash is linear in the hash of each
// colour's cells, which is kept for every dihedral transform.
//
//	hash(grid) = sum over colours c of multiplier(new colour of c) * sum over cells of c of weight(cell)
type orbit struct {
	grids [NumDihedral][]gridHash // two per pair: input, output
}

type gridHash struct {
	shape uint64
	used  []colorHash
}

type colorHash struct {
	color uint8
	sum   [2]uint64
}

// hashWeights are fixed pseudo-random words: one per lane and cell, one per
// lane and colour.
var hashWeights = func() (w struct {
	cell  [2][arc.MaxSide * arc.MaxSide]uint64
	color [2][arc.NumColors]uint64
}) {
	x := uint64(0x6a09e667f3bcc908)
	next := func() uint64 {
		x += 0x9e3779b97f4a7c15
		return scramble(x)
	}
	for lane := range w.cell {
		for i := range w.cell[lane] {
			w.cell[lane][i] = next()
		}
		for i := range w.color[lane] {
			w.color[lane][i] = next() | 1
		}
	}
	return w
}()

// scramble is a bijection of 64-bit words that spreads every bit (the
// finaliser of SplitMix64; Steele, Lea and Flood, 2014).
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func newOrbit(pairs []arc.Pair) *orbit {
	o := new(orbit)
	for t := range o.grids {
		for _, p := range pairs {
			o.grids[t] = append(o.grids[t], hashGrid(Dihedral(p.Input, t)), hashGrid(Dihedral(p.Output, t)))
		}
	}
	return o
}

func hashGrid(g arc.Grid) gridHash {
	var sums [arc.NumColors][2]uint64
	var used [arc.NumColors]bool
	for r := range g.Rows {
		for c := range g.Cols {
			v := g.At(r, c)
			used[v] = true
			for lane := range sums[v] {
				sums[v][lane] += hashWeights.cell[lane][r*arc.MaxSide+c]
			}
		}
	}
	h := gridHash{shape: uint64(g.Rows)<<8 | uint64(g.Cols)}
	for v, is := range used {
		if is {
			h.used = append(h.used, colorHash{uint8(v), sums[v]})
		}
	}
	return h
}

func (h *gridHash) under(c *Colors) (x, y uint64) {
	for i := range h.used {
		u := &h.used[i]
		n := c[u.color]
		x += hashWeights.color[0][n] * u.sum[0]
		y += hashWeights.color[1][n] * u.sum[1]
	}
	return x, y
}

// fingerprint returns the task's fingerprint under a.
func (o *orbit) fingerprint(a Augmentation) fingerprint {
	var f fingerprint
	grids := o.grids[a.Dihedral]
	for i := 0; i+1 < len(grids); i += 2 {
		in, out := &grids[i], &grids[i+1]
		ix, iy := in.under(&a.Colors)
		ox, oy := out.under(&a.Colors)
		shape := scramble(in.shape<<16|out.shape) + 1
		// Sums over pairs: blind to their order, not to their number.
		f[0] += scramble(scramble(ix+shape) + ox)
		f[1] += scramble(scramble(iy^bits.RotateLeft64(shape, 32)) + oy)
	}
	return f
}

// size returns the number of different augmentations of the task, at most
// limit, by walking from copy to copy along generators of the group: a turn, a
// flip, and the swaps of neighbouring colours.
func (o *orbit) size(limit int) int {
	start := Original()
	seen := map[fingerprint]bool{o.fingerprint(start): true}
	queue := []Augmentation{start}
	for len(queue) > 0 && len(seen) < limit {
		a := queue[0]
		queue = queue[1:]
		visit := func(b Augmentation) {
			if f := o.fingerprint(b); !seen[f] && len(seen) < limit {
				seen[f] = true
				queue = append(queue, b)
			}
		}
		for _, t := range []int{1, 4} {
			visit(Augmentation{ComposeDihedral(t, a.Dihedral), a.Colors})
		}
		for v := uint8(1); v+1 < arc.NumColors; v++ {
			b := a
			for i, c := range a.Colors {
				switch c {
				case v:
					b.Colors[i] = v + 1
				case v + 1:
					b.Colors[i] = v
				}
			}
			visit(b)
		}
	}
	return len(seen)
}
