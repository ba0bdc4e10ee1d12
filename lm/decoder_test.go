package lm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick/picktest"
	"deeploop/internal/kernel/ref"
)

func newTestDecoder(t *testing.T, m *Model, be kernel.Backend) *Decoder {
	t.Helper()
	d, err := NewDecoder(m, be)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// uncached are the logits [T, V] of a whole text.
func uncached(t *testing.T, m *Model, be kernel.Backend, ids []int32) []float64 {
	t.Helper()
	f, err := NewForward(m, be, 1, len(ids))
	require.NoError(t, err)
	defer f.Close()
	copy(f.Tokens, ids)
	require.NoError(t, f.Embed())
	for range m.Config.Loops {
		require.NoError(t, f.Round())
	}
	b, err := f.Logits()
	require.NoError(t, err)
	out := make([]float64, b.Len())
	for i := range out {
		out[i] = b.At(i)
	}
	return out
}

// appended are the logits that Append gives for ids from position from on.
func appended(t *testing.T, d *Decoder, ids []int32, from int) []float64 {
	t.Helper()
	var out []float64
	next := from
	require.NoError(t, d.Append(ids, from, func(i int, logits []float32) error {
		require.Equal(t, next, i)
		require.Len(t, logits, d.VocabSize())
		next++
		for _, v := range logits {
			out = append(out, float64(v))
		}
		return nil
	}))
	require.Equal(t, len(ids), next)
	return out
}

// differ is the largest difference.
func differ(a, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = math.Max(worst, math.Abs(a[i]-b[i]))
	}
	return worst
}

// rms is the root mean square of the differences.
func rms(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum / float64(len(a)))
}

// Logits with the cache are those of the whole text: to 1e-4 in fp32 and to
// bf16's round-off, in whatever pieces the text comes, after Reset too, for
// every placement and 1 to 4 loops.
func TestDecoderAgreesWithForward(t *testing.T) {
	const total = 160 // 128 + 16 + 16
	pieces := [][]int{{total}, slices.Repeat([]int{1}, 40), {3, 7, 1, 17, 33, 2}, {128, 16, 1}, {145}, {1, 127, 16, 16}}
	for name, be := range picktest.Backends(t, 2) {
		for _, p := range []deeploop.Placement{deeploop.DeepLoop, deeploop.DeepNorm, deeploop.PreNorm, deeploop.PostNorm} {
			for loops := 1; loops <= 4; loops++ {
				for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
					t.Run(fmt.Sprintf("%s %s loops=%d %v", name, p, loops, act), func(t *testing.T) {
						c := tiny()
						place(p)(&c)
						c.Arch.Loops, c.Arch.Context = loops, total
						c.Arch.HiddenSize, c.Arch.MLPWidth = 32, 48
						c.Arch.QKNorm = loops%2 == 1
						c.Arch.FinalNorm = []string{Auto, On}[loops/3]
						m, err := NewModel(c.Arch, act, 3)
						require.NoError(t, err)
						shake(m, 2)
						ids := tokensOf(total, c.Arch.VocabSize)
						v := c.Arch.VocabSize
						want := uncached(t, m, be, ids)
						tol := 1e-4
						if act == kernel.BFloat16 { // two results as far from the exact one as this are at most so far apart
							exact, err := NewModel(c.Arch, kernel.Float32, 3)
							require.NoError(t, err)
							shake(exact, 2)
							tol = 2 * rms(want, uncached(t, exact, be, ids))
						}
						agree := func(want, got []float64, what any) {
							t.Helper()
							if act == kernel.BFloat16 {
								require.LessOrEqual(t, rms(want, got), tol, what)
								return
							}
							require.LessOrEqual(t, differ(want, got), tol, what)
						}
						d := newTestDecoder(t, m, be)
						for _, cut := range pieces {
							d.Reset(0)
							at := 0
							var got []float64
							for _, n := range cut {
								got = append(got, appended(t, d, ids[at:at+n], 0)...)
								at += n
								require.Equal(t, at, d.Len())
							}
							agree(want[:at*v], got, cut)
						}
						// Back to the middle, on with other tokens.
						d.Reset(50)
						other := slices.Concat(ids[:50], tokensOf(35, v))
						got := appended(t, d, other[50:], 20)
						agree(uncached(t, m, be, other)[70*v:], got, "after Reset")
					})
				}
			}
		}
	}
}

// A model at another loop count decodes as Forward evaluates it there.
func TestDecoderAtAnotherLoopCount(t *testing.T) {
	be := ref.New(1)
	c := tiny()
	trained, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	other, err := NewModel(c.Arch.AtLoops(5), kernel.Float32, 3)
	require.NoError(t, err)
	for i, p := range trained.Params() { // beta is of the training
		copy(other.Params()[i].Data.Bytes(), p.Data.Bytes())
	}
	f := newTestForward(t, trained, 1)
	ids := tokensOf(6, c.Arch.VocabSize)
	copy(f.Tokens, ids)
	require.NoError(t, f.Embed())
	for range 5 {
		require.NoError(t, f.Round())
	}
	logits, err := f.Logits()
	require.NoError(t, err)
	got := appended(t, newTestDecoder(t, other, be), ids, 0)
	for i, g := range got {
		require.InDelta(t, logits.At(i), g, 1e-5)
	}
}

func TestDecoderRefusesAndStops(t *testing.T) {
	c := tiny()
	m, err := NewModel(c.Arch, kernel.Float32, 3)
	require.NoError(t, err)
	d := newTestDecoder(t, m, ref.New(1))
	require.Equal(t, 6, d.Context())
	require.ErrorContains(t, d.Append(make([]int32, 7), 0, nil), "sequence is 7 tokens long, expected at most the model's context of 6")
	require.ErrorContains(t, d.Append([]int32{0, 11}, 0, nil), "token 1 is 11, expected an id below the vocabulary of 11")
	require.ErrorContains(t, d.Append([]int32{-1}, 0, nil), "token 0 is -1")
	require.Zero(t, d.Len(), "nothing was added")
	require.NoError(t, d.Append([]int32{1, 2, 3}, 0, nil))
	require.Equal(t, 3, d.Len())
	stop := errors.New("enough")
	require.ErrorIs(t, d.Append([]int32{1, 2, 3}, 1, func(i int, _ []float32) error {
		require.Equal(t, 1, i)
		return stop
	}), stop)
	require.Equal(t, 5, d.Len(), "tokens up to the end of the chunk")
	require.NoError(t, d.Append([]int32{1}, 0, nil))
	require.Error(t, d.Append([]int32{1}, 0, nil))
	require.Panics(t, func() { d.Reset(7) })
	require.Panics(t, func() { d.Reset(-1) })
	d.Reset(0)
	require.NoError(t, d.Append([]int32{1, 2, 3, 4, 5, 6}, 6, func(int, []float32) error { return stop }), "nobody asks")
}
