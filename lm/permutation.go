package lm

import (
	"math/bits"

	"deeploop/internal/rng"
)

// permutation is a drawn order of 0 to n-1 that takes no memory: a Feistel
// network on the next even number of bits, walked until it lands below n
// (Black and Rogaway 2002). Fewer rounds or bits favour some orders where n is
// small: TestPermutationIsUniformEnough sees it.
type permutation struct {
	n    int64
	half uint // bits of each half
	keys [8]uint64
}

func newPermutation(s *rng.Stream, n int64) permutation {
	p := permutation{n: n, half: max(3, uint(bits.Len64(uint64(n-1))+1)/2)}
	for i := range p.keys {
		p.keys[i] = s.Uint64()
	}
	return p
}

// at returns element i, 0 <= i < n.
func (p permutation) at(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := i>>p.half, i&mask
		for _, k := range p.keys {
			left, right = right, left^mix(right^k)&mask
		}
		if i = left<<p.half | right; i < uint64(p.n) {
			return i
		}
	}
}

// mix scrambles 64 bits (the finaliser of SplitMix64, Steele et al. 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
