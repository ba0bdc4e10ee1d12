package kerneltest

import "math/rand/v2"

// tail is the longest side of a case of Tails: twice the widest tile of any
// kernel (48) and a bit.
const tail = 99

// Tails returns cases with every size from 1 to tail on each side of each
// operation, the other sides drawn at random: what is left over beyond whole
// tiles and vectors takes every value. Flat loops are also cut right at the
// ends of their chunks.
func Tails() (all []Case) {
	r := rand.New(rand.NewPCG(99, 1))
	some := func() int { return 1 + r.IntN(tail) }
	yes := func() bool { return r.IntN(2) == 0 }
	product := func(m, n, k int) {
		all = append(all, linear(m, n, k, false), linear(m, n, k, true), linearDX(m, n, k, false), linearDX(m, n, k, true),
			linearDW(m, n, k, false), linearDW(m, n, k, true))
	}
	flat := func(n int) {
		all = append(all, add(n, yes(), ""), convert(n), sumSquares(n, "", normal(1)), adam(n, 3, -3, 1), averaged(adam(n, 3, -3, 1)),
			adamW(n, 3, -3, 1, .5, 1e-8), averaged(adamW(n, 3, -3, 1, .5, 1e-8)), signSGD(n), lerp(n))
		for _, k := range activations {
			all = append(all, activate(n, k, ""), activateBackward(n, k, ""))
		}
	}
	for i := 1; i <= tail; i++ {
		product(i, some(), some())
		product(some(), i, some())
		product(some(), some(), i)
		for _, a := range []attn{{B: 2, T: i, N: 1 + r.IntN(2), K: some()}, {B: 1, T: some(), N: 1 + r.IntN(2), K: i}} {
			a.causal, a.rope = yes(), a.K%2 == 0 && yes()
			all = append(all, a.forward(), a.backward())
		}
		p := norm{rows: some(), d: i, z: yes(), gain: yes(), alpha: 1.5, noDz: yes(), noDgain: yes()}
		all = append(all, p.forward())
		if i > 1 { // the gradient of one column is all cancellation
			all = append(all, p.backward())
		}
		for _, c := range []cached{{T: 1 + r.IntN(9), past: r.IntN(40), N: 1 + r.IntN(3), K: i}, {T: 1 + r.IntN(5), past: i - 1, N: 2, K: some()}, {T: i, past: r.IntN(20), N: 1, K: some()}} {
			c.ctx, c.rope = c.past+c.T+r.IntN(3), c.K%2 == 0 && yes()
			all = append(all, c.forward())
		}
		h := qkNorm{B: 1, T: some(), N: 1 + r.IntN(3), K: i, noGain: yes(), noDgain: yes()}
		all = append(all, h.forward())
		if i > 1 {
			all = append(all, h.backward())
		}
		all = append(all, swiglu(some(), i, false), swigluBackward(some(), i, false))
		e := embed{B: 2, T: 1 + r.IntN(9), prefix: r.IntN(3), d: i, v: 7, pos: yes(), accumulate: yes()}
		if e.prefix > 0 {
			e.puzzle = 1 + r.IntN(e.prefix*e.d)
		}
		l := loss{rows: some(), v: i, softmax: yes()}
		all = append(all, e.forward(), e.backward(), l.forward(), l.backward())
		flat(i)
	}
	for _, n := range []int{16383, 16384, 16385, 2*16384 + 17} {
		flat(n)
	}
	for i := range all {
		all[i].Name = name("%d %s", i, all[i].Name)
	}
	return all
}
