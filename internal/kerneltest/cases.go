package kerneltest

import "fmt"

// Cases returns the whole list for Agree.
func Cases() []Case {
	var all []Case
	for _, f := range []func() []Case{linearCases, embedCases, attentionCases, cachedCases, normCases, qkNormCases, swigluCases, activateCases, lossCases, moveCases, updateCases, nanCases} {
		all = append(all, f()...)
	}
	return all
}

// SpeedCases returns the shapes for Speed. They are the same cases with larger
// sizes. Outputs are written again and again.
func SpeedCases() []Case {
	var all []Case
	for _, s := range []struct{ m, n, k int }{{3232, 384, 128}, {3604, 1536, 512}} {
		all = append(all, linear(s.m, s.n, s.k, false), linearDX(s.m, s.n, s.k, false), linearDW(s.m, s.n, s.k, true))
	}
	for _, s := range []attn{{B: 32, T: 101, N: 4, K: 32, rope: true}, {B: 32, T: 101, N: 2, K: 64, rope: true}, {B: 2, T: 901, N: 8, K: 64, rope: true}} {
		all = append(all, s.forward(), s.backward())
	}
	for _, s := range []struct{ m, d, f int }{{6464, 128, 512}, {6464, 129, 513}, {3232, 256, 768}, {901, 512, 1536}, {901, 513, 1537}, {14416, 512, 1536}} {
		plain, gain := norm{rows: s.m, d: s.d, z: true, alpha: 1.2}, norm{rows: s.m, d: s.d, z: true, gain: true, alpha: 1}
		all = append(all, plain.forward(), plain.backward(), gain.forward(), gain.backward(),
			swiglu(s.m, s.f, false), swigluBackward(s.m, s.f, false), add(s.m*s.d, false, ""), add(s.m*s.d, true, ""), convert(s.m*s.d))
	}
	for _, s := range []loss{{rows: 6464, v: 12}, {rows: 6464, v: 13}, {rows: 512, v: 4096}, {rows: 512, v: 4097}} {
		for _, s.softmax = range []bool{false, true} {
			all = append(all, s.forward(), s.backward())
		}
	}
	for _, s := range []embed{{B: 64, T: 100, prefix: 1, d: 128, puzzle: 128, v: 12}, {B: 1, T: 900, prefix: 1, d: 512, puzzle: 512, v: 12}} {
		all = append(all, s.forward(), s.backward())
	}
	for _, ctx := range []int{256, 1024, 8192} {
		all = append(all, cached{past: ctx - 1, T: 1, ctx: ctx, N: 12, K: 64, rope: true}.decoding())
	}
	all = append(all, cached{T: 256, ctx: 1024, N: 12, K: 64, rope: true}.forward(), cached{past: 768, T: 256, ctx: 1024, N: 12, K: 64, rope: true}.forward())
	for _, s := range []qkNorm{{B: 2, T: 1024, N: 12, K: 64}, {B: 1, T: 1024, N: 8, K: 128}} {
		all = append(all, s.forward(), s.backward())
	}
	for _, k := range activations {
		for _, n := range []int{2048 * 1024, 2048*1024 + 1} {
			all = append(all, activate(n, k, ""), activateBackward(n, k, ""))
		}
	}
	for _, n := range []int{1 << 13, 1 << 16, 1 << 20, 1<<20 + 1, 27 << 20} {
		for _, c := range []Case{adamSteady(adam(n, 5, -6, 0)), adamSteady(adamW(n, 5, -6, 0, 1, 1e-8)), signSGD(n), lerp(n), sumSquares(n, "", normal(1))} {
			c.MasterOnly = c.Op != "SumSquares"
			all = append(all, c)
		}
	}
	return all
}

func flag(on bool, s string) string {
	if on {
		return " " + s
	}
	return ""
}

func name(format string, a ...any) string { return fmt.Sprintf(format, a...) }
