package lm

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/rng"
)

// memory is a split in memory.
type memory []int32

func (m memory) Len() int64 { return int64(len(m)) }

func (m memory) Read(dst []int32, at int64) error {
	if at < 0 || at+int64(len(dst)) > m.Len() {
		return fmt.Errorf("tokens %d to %d of %d", at, at+int64(len(dst)), len(m))
	}
	copy(dst, m[at:])
	return nil
}

// count is a split of n tokens whose ids are their positions.
type count int64

func (n count) Len() int64 { return int64(n) }

func (n count) Read(dst []int32, at int64) error {
	if at < 0 || at+int64(len(dst)) > int64(n) {
		return fmt.Errorf("tokens %d to %d of %d", at, at+int64(len(dst)), int64(n))
	}
	for i := range dst {
		dst[i] = int32(at + int64(i))
	}
	return nil
}

func TestLoaderTakesEveryWindowOnce(t *testing.T) {
	for _, n := range []int64{2, 3, 7, 8, 9, 15, 16, 17, 40, 1000} {
		for _, width := range []int{1, 2, 7} {
			if n < int64(width)+1 {
				continue
			}
			l, err := NewLoader(count(n), width, 4)
			require.NoError(t, err)
			in, out := make([]int32, width), make([]int32, width)
			for epoch := range 4 {
				seen := map[int32]int{}
				offset := int32(math.MaxInt32)
				for l.Place.Epoch == epoch {
					require.NoError(t, l.Next(in, out))
					for i := range in {
						require.Equal(t, in[0]+int32(i), in[i], "a window is a piece of text")
						require.Equal(t, in[i]+1, out[i], "labels are the next tokens")
						seen[in[i]]++
					}
					offset = min(offset, in[0])
				}
				require.Less(t, int64(offset), int64(width), "at most a window is left out in front")
				windows := (n - 1 - int64(offset)) / int64(width)
				require.Len(t, seen, int(windows)*width, "all that fit from the offset on")
				for id, times := range seen {
					require.Equal(t, 1, times, "token %d", id)
					require.GreaterOrEqual(t, id, offset)
				}
			}
		}
	}
}

// Offsets reach from 0 to T-1 and orders differ between epochs and seeds.
func TestLoaderDrawsOffsetsAndOrders(t *testing.T) {
	const width = 8
	firsts, offsets := map[int32]bool{}, map[int64]bool{}
	for seed := range uint64(3) {
		l, err := NewLoader(count(20*width), width, seed)
		require.NoError(t, err)
		for epoch := range 100 {
			l.Place = Place{Epoch: epoch}
			in, out := make([]int32, width), make([]int32, width)
			require.NoError(t, l.Next(in, out))
			firsts[in[0]], offsets[l.offset] = true, true
		}
	}
	require.Len(t, offsets, width)
	require.Greater(t, len(firsts), 100, "of 152 starts in 300 draws")
	one, err := NewLoader(count(width+3), width, 1) // two spare tokens
	require.NoError(t, err)
	clear(offsets)
	for epoch := range 100 {
		one.Place = Place{Epoch: epoch}
		require.NoError(t, one.Next(make([]int32, width), make([]int32, width)))
		offsets[one.offset] = true
	}
	require.Equal(t, map[int64]bool{0: true, 1: true, 2: true}, offsets)
}

// A Place, taken through JSON at any point, gives what would have come next.
func TestLoaderResumesAnywhere(t *testing.T) {
	const width, rows = 5, 3
	batch := func(l *Loader) []int32 {
		in, out := make([]int32, rows*width), make([]int32, rows*width)
		require.NoError(t, l.Next(in, out))
		return append(in, out...)
	}
	whole, err := NewLoader(count(83), width, 6)
	require.NoError(t, err)
	for range 40 { // seven epochs
		raw, err := json.Marshal(whole.Place)
		require.NoError(t, err)
		resumed, err := NewLoader(count(83), width, 6)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &resumed.Place))
		want := batch(whole)
		require.Equal(t, want, batch(resumed))
		require.Equal(t, whole.Place, resumed.Place)
	}
	whole.Place = Place{Epoch: 1, Window: 17}
	require.ErrorContains(t, whole.Next(make([]int32, width), make([]int32, width)), "window 17 of 1")
}

func TestLoaderRefusesLessThanAWindow(t *testing.T) {
	for _, n := range []count{0, 1, 8} {
		_, err := NewLoader(n, 8, 1)
		require.ErrorContains(t, err, "arch.context is 8, expected at most")
		require.ErrorContains(t, err, fmt.Sprintf("the training split has %d tokens", n))
	}
	l, err := NewLoader(count(9), 8, 1)
	require.NoError(t, err)
	in, out := make([]int32, 24), make([]int32, 24)
	require.NoError(t, l.Next(in, out), "a batch may read the only window again")
	require.Equal(t, in[:8], in[16:])
}

// far is more tokens than any machine holds.
const far = math.MaxInt64

type anywhere struct{}

func (anywhere) Len() int64 { return far }
func (anywhere) Read(dst []int32, at int64) error {
	if at < 0 || at > far-int64(len(dst)) {
		return fmt.Errorf("position %d", at)
	}
	return nil
}

func TestLoaderOfHugeDataTakesNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := NewLoader(anywhere{}, 1024, 1)
	require.NoError(t, err)
	in, out := make([]int32, 4096), make([]int32, 4096)
	for range 1000 {
		require.NoError(t, l.Next(in, out))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestPermutationIsOne(t *testing.T) {
	for n := int64(1); n < 300; n++ {
		p := newPermutation(rng.NewStream(uint64(n), "test"), n)
		seen := make([]bool, n)
		for i := range uint64(n) {
			j := p.at(i)
			require.Less(t, j, uint64(n))
			require.False(t, seen[j], "%d twice of %d", j, n)
			seen[j] = true
		}
	}
}

// Every element is equally likely at every place, and so is every pair of
// neighbours: chi-squared over many draws, in standard deviations.
func TestPermutationIsUniformEnough(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 17, 64} {
		draws := 2000 * n
		places, follow := make([]float64, n*n), make([]float64, n*n)
		s := rng.NewStream(9, "test")
		for range draws {
			p := newPermutation(s, int64(n))
			last := -1
			for i := range n {
				j := int(p.at(uint64(i)))
				places[i*n+j]++
				if last >= 0 {
					follow[last*n+j]++
				}
				last = j
			}
		}
		chi := func(seen []float64, cells, expect float64) float64 {
			x := 0.0
			for _, o := range seen {
				x += (o - expect) * (o - expect) / expect
			}
			x *= 1 - 1/float64(n) // the cells of a draw exclude each other
			return (x - cells) / math.Sqrt(2*cells)
		}
		cells := float64((n - 1) * (n - 1))
		require.Less(t, chi(places, cells, float64(draws)/float64(n)), 5., "places of %d", n)
		if n == 2 {
			continue
		}
		var pairs []float64
		for i := range n {
			for j := range n {
				if i != j {
					pairs = append(pairs, follow[i*n+j])
				}
			}
		}
		require.Less(t, chi(pairs, float64(n*(n-1)), float64(draws)/float64(n)), 5., "neighbours of %d", n)
	}
}

// tokensOf draws n tokens.
func tokensOf(n, vocabulary int) memory {
	s := rng.NewStream(uint64(n), "tokens")
	m := make(memory, n)
	for i := range m {
		m[i] = s.Int32N(int32(vocabulary))
	}
	return m
}
