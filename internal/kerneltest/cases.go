package kerneltest

import "fmt"

// Cases returns the whole list for Agree.
func Cases() []Case {
	var all []Case
	for _, f := range []func() []Case{linearCases, embedCases, attentionCases, normCases, swigluCases, lossCases, moveCases, updateCases, nanCases} {
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
	all = append(all,
		norm{rows: 3232, d: 128, z: true, alpha: 1.2}.forward(), norm{rows: 3232, d: 128, z: true, alpha: 1.2}.backward(),
		norm{rows: 3604, d: 512, z: true, gain: true, alpha: 1}.forward(), norm{rows: 3604, d: 512, z: true, gain: true, alpha: 1}.backward(),
		swiglu(3232, 384, false), swiglu(3604, 1536, false), swigluBackward(3232, 384, false), swigluBackward(3604, 1536, false),
		loss{rows: 3232, v: 12}.forward(), loss{rows: 3232, v: 12}.backward(), loss{rows: 512, v: 4096, softmax: true}.forward(), loss{rows: 512, v: 4096, softmax: true}.backward(),
		embed{B: 32, T: 100, prefix: 1, d: 128, puzzle: 128, v: 12}.forward(), embed{B: 32, T: 100, prefix: 1, d: 128, puzzle: 128, v: 12}.backward(),
		add(3232*128, true, ""), convert(3232*512), adamSteady(1<<20), signSGD(1<<20), lerp(1<<20), sumSquares(1<<20, "", normal(1)),
	)
	return all
}

func flag(on bool, s string) string {
	if on {
		return " " + s
	}
	return ""
}

func name(format string, a ...any) string { return fmt.Sprintf(format, a...) }
