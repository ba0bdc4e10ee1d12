package hrm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// A probe computes what an evaluation does, bit for bit: its segments have the
// evaluator's tokens and logits, and a call with its qkv in view ends in the
// state of the same call without.
func TestProbeComputesWhatEvaluationDoes(t *testing.T) {
	for name, change := range variants() {
		t.Run(name, func(t *testing.T) {
			c := tiny().Arch
			c.HCycles, c.LCycles = 2, 2
			change(&c)
			m, err := NewModel(c, kernel.Float32, 3)
			require.NoError(t, err)
			backend := ref.New(1)
			p, err := NewProbe(m, backend)
			require.NoError(t, err)
			defer p.Close()
			s, err := NewSegment(m, backend, 1)
			require.NoError(t, err)
			defer s.Close()
			rows := randomRows(c, 1, 4)
			trace, err := p.Run(t.Context(), rows)
			require.NoError(t, err)
			require.Len(t, trace.Segments, c.HaltMaxSteps)
			_, err = NewEvaluator(s).Run(t.Context(), rows, func(k int) {
				tokens := make([]uint8, c.SeqLen)
				s.Predicted(0, tokens)
				require.Equal(t, tokens, trace.Segments[k-1].Tokens)
				require.Equal(t, s.Q.QHalt[0], trace.Segments[k-1].QHalt)
				require.Equal(t, s.Q.QContinue[0], trace.Segments[k-1].QContinue)
			})
			require.NoError(t, err)

			if c.MLPT {
				_, err := p.Attention(trace, 0, 0, 0, 0)
				require.ErrorContains(t, err, "mlp_t")
				return
			}
			n := c.Positions()
			last := len(p.Calls()) - 1
			for segment := range trace.Segments {
				for call, module := range p.Calls() {
					for head := -1; head < c.NumHeads; head++ {
						w, err := p.Attention(trace, segment, call, 0, head)
						require.NoError(t, err)
						require.Len(t, w, n*n)
						for q := range n {
							sum := 0.0
							for _, v := range w[q*n : (q+1)*n] {
								require.GreaterOrEqual(t, v, float32(0))
								sum += float64(v)
							}
							require.InDelta(t, 1, sum, 1e-5)
						}
					}
					require.Equal(t, module == deeploop.H, call%(c.LCycles+1) == c.LCycles)
				}
				// The last H call, looked at, leaves the next segment's state.
				if segment+1 < len(trace.Segments) {
					_, err := p.Attention(trace, segment, last, 0, 0)
					require.NoError(t, err)
					require.Equal(t, trace.Segments[segment+1].zH.Bytes(), p.h.Buf(p.h.out).Bytes())
				}
			}
		})
	}
}

func TestProbeRefusesWhatIsNotThere(t *testing.T) {
	c := tiny().Arch
	m, err := NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	p, err := NewProbe(m, ref.New(1))
	require.NoError(t, err)
	defer p.Close()
	trace, err := p.Run(t.Context(), randomRows(c, 1, 4))
	require.NoError(t, err)
	for _, at := range [][4]int{{-1, 0, 0, 0}, {len(trace.Segments), 0, 0, 0}, {0, len(p.Calls()), 0, 0}, {0, 0, 9, 0}, {0, 0, 0, -2}, {0, 0, 0, c.NumHeads}} {
		_, err := p.Attention(trace, at[0], at[1], at[2], at[3])
		require.ErrorContains(t, err, "there are")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Run(ctx, randomRows(c, 1, 4))
	require.ErrorIs(t, err, context.Canceled)
}
