package peer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/bench"
	"deeploop/internal/goldentest"
)

func find(t *testing.T) *Python {
	p, err := Find()
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// The peer is a fair opponent only if it computes the same.
func TestGoldenPeer(t *testing.T) {
	p := find(t)
	goldentest.Files(t, "hrm_*.json") // says why it skips
	goldentest.Files(t, "lm_*.json")
	out, err := p.Check(goldentest.Dir(t))
	t.Logf("\n%s", out)
	require.NoError(t, err)
}

func TestServer(t *testing.T) {
	p := find(t)
	s, err := p.Start("amx", Environment{Capability: "avx2", Wait: "passive", Memory: "keep", Threads: 1})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, 1, s.Hello.Threads)
	configs := []bench.Config{
		{HiddenSize: 32, NumHeads: 2, HLayers: 1, LLayers: 1, HCycles: 2, LCycles: 2, SeqLen: 9, BatchSize: 3},
		{Model: bench.LM, HiddenSize: 32, NumHeads: 2, Layers: 2, Loops: 2, VocabSize: 11, SeqLen: 9, BatchSize: 3},
	}
	for _, precision := range []string{"fp32", "bf16"} {
		for _, c := range configs {
			for _, cast := range []string{"step", "call", "autocast"} {
				if cast == "autocast" && (c.Model == bench.HRM || precision == "fp32") {
					continue
				}
				_, err = s.Do(bench.Request{Op: "open", Config: &c, Precision: precision, Cast: cast})
				require.NoError(t, err)
				r, err := s.Do(bench.Request{Op: "step", Times: 2})
				require.NoError(t, err)
				require.Len(t, r.Seconds, 2)
				require.Positive(t, r.Loss)
			}
		}
		for _, kind := range []string{"forward", "dx", "dw"} {
			r, err := s.Do(bench.Request{Op: "product", Precision: precision, Kind: kind, M: 5, N: 7, K: 9, Times: 3})
			require.NoError(t, err)
			require.Len(t, r.Seconds, 3)
		}
	}
	r, err := s.Do(bench.Request{Op: "memory"})
	require.NoError(t, err)
	require.Greater(t, r.PeakRSS, int64(1<<20))
	_, err = s.Do(bench.Request{Op: "nonsense"})
	require.Error(t, err)
}
