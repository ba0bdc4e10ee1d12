package kerneltest

import (
	"math"
	"math/rand/v2"

	"deeploop/internal/kernel"
)

// nanCases: a NaN among the inputs must be seen in the same results as with
// ref, or a broken run would go on unnoticed.
func nanCases() []Case {
	nan := one(math.NaN())
	all := []Case{
		swiglu(9, 37, false), swigluBackward(9, 37, false), norm{rows: 12, d: 40, z: true, gain: true, alpha: 1.5}.forward(),
		attn{B: 3, T: 5, N: 4, K: 4}.forward(), attn{B: 3, T: 5, N: 4, K: 4}.backward(), qkNorm{B: 1, T: 9, N: 3, K: 20}.forward(), linear(40, 20, 30, false),
		activate(500, kernel.GELU, ""), activate(500, kernel.GELUErf, ""), activate(500, kernel.ReLUSquared, ""),
		activateBackward(500, kernel.GELU, ""), activateBackward(500, kernel.GELUErf, ""), activateBackward(500, kernel.ReLUSquared, ""),
		loss{rows: 40, v: 12}.forward(), loss{rows: 40, v: 70, softmax: true}.forward(), loss{rows: 40, v: 12}.backward(),
		adam(500, 3, -3, 1), averaged(adamW(500, 3, -3, 1, .5, 1e-8)), signSGD(500), lerp(500), add(500, true, ""),
	}
	for i := range all {
		c := &all[i]
		c.Name += " NaN"
		for j := range c.Tensors {
			t := &c.Tensors[j]
			switch t.Name {
			case "gu", "x", "qkv", "logits", "g", "a", "src":
				t.Fill = nan
			}
		}
	}
	return all
}

// Random returns one case of each operation with shapes drawn from r, for
// tests with many seeds.
func Random(r *rand.Rand) []Case {
	n := func(most int) int { // small sizes more often
		if r.IntN(2) == 0 {
			return 1 + r.IntN(min(most, 9))
		}
		return 1 + r.IntN(most)
	}
	yes := func() bool { return r.IntN(2) == 0 }
	m, c, k, d := n(70), n(70), n(140), n(140)
	e := embed{B: n(3), T: n(20), prefix: r.IntN(4), d: n(70), v: n(12), pos: yes(), accumulate: yes()}
	if e.prefix > 0 {
		e.puzzle = 1 + r.IntN(e.prefix*e.d)
	}
	a := attn{B: n(3), T: n(140), N: n(3), K: n(128), causal: yes(), rope: yes()}
	if a.rope {
		a.K += a.K % 2
	}
	first := a
	first.queries = n(a.T)
	p := norm{rows: n(90), d: 1 + n(140), z: yes(), gain: yes(), alpha: .5 + 2*r.Float64(), noDz: yes(), noDgain: yes()}
	switch r.IntN(3) {
	case 0:
		p.dxIsDy = true
	case 1:
		p.dzIsDy = !p.noDz
	}
	l := loss{rows: n(60), v: n(200), softmax: yes(), extreme: yes()}
	all := []Case{
		linear(m, c, k, yes()), linearDX(m, c, k, yes()), linearDW(m, c, k, yes()), e.forward(), e.backward(), a.forward(), a.backward(), first.forward(), p.forward(), p.backward(),
		swiglu(m, d, yes()), swigluBackward(m, d, yes()), l.forward(), l.backward(), add(n(40000), yes(), ""), convert(n(40000)), sumSquares(n(40000), "", normal(1)),
		adam(n(40000), n(50), -12, 2), averaged(adamW(n(40000), n(50), -12, 2, r.Float64(), 1e-8)), signSGD(n(40000)), lerp(n(40000)),
	}
	k2 := cached{past: r.IntN(140), T: n(70), N: n(3), K: n(128)}
	k2.ctx, k2.rope = k2.past+k2.T+r.IntN(9), k2.K%2 == 0 && yes()
	all = append(all, k2.forward())
	h := qkNorm{B: n(3), T: n(70), N: n(4), K: 1 + n(140), noGain: yes(), noDgain: yes(), in: yes()}
	all = append(all, h.forward(), h.backward())
	for _, f := range activations {
		all = append(all, activate(n(40000), f, ""), activateBackward(n(40000), f, ""))
	}
	for i := range all {
		all[i].Name += name(" seed%d", r.Uint32())
	}
	return all
}
