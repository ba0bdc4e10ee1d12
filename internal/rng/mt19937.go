package rng

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	mtLen   = 624
	mtShift = 397
)

// Legacy is numpy's RandomState: the 32-bit Mersenne Twister MT19937
// (Matsumoto and Nishimura, 1998) with numpy's legacy way of drawing bounded
// integers, which takes one 32-bit output, masks it and rejects what is too
// large.
type Legacy struct {
	state [mtLen]uint32
	pos   int // next word of state to hand out; mtLen: refill first
}

// NewLegacy returns the stream that np.random.seed(seed) starts.
func NewLegacy(seed uint32) *Legacy {
	m := &Legacy{pos: mtLen}
	for i := range m.state {
		m.state[i] = seed
		seed = 1812433253*(seed^seed>>30) + uint32(i) + 1
	}
	return m
}

func twist(u, v uint32) uint32 {
	y := u&0x80000000 | v&0x7fffffff
	return y>>1 ^ (-(v & 1))&0x9908b0df
}

func (m *Legacy) refill() {
	s := &m.state
	i := 0
	for ; i < mtLen-mtShift; i++ {
		s[i] = s[i+mtShift] ^ twist(s[i], s[i+1])
	}
	for ; i < mtLen-1; i++ {
		s[i] = s[i+mtShift-mtLen] ^ twist(s[i], s[i+1])
	}
	s[mtLen-1] = s[mtShift-1] ^ twist(s[mtLen-1], s[0])
	m.pos = 0
}

// Uint32 returns the next raw output.
func (m *Legacy) Uint32() uint32 {
	if m.pos == mtLen {
		m.refill()
	}
	y := m.state[m.pos]
	m.pos++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// Intn returns a uniform integer of [0, n), as np.random.randint(0, n).
// A range of one value draws nothing. It panics unless 0 < n <= 2^32.
func (m *Legacy) Intn(n int) int {
	if n <= 0 || uint64(n) > 1<<32 {
		panic("rng: Intn needs 0 < n <= 2^32")
	}
	return int(masked(m, uint32(n-1)))
}

// Shuffle permutes n elements as np.random.shuffle does.
func (m *Legacy) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(masked(m, uint32(i))))
	}
}

// ShuffleBytes shuffles b in place, as np.random.shuffle.
func (m *Legacy) ShuffleBytes(b []uint8) {
	for i := len(b) - 1; i > 0; i-- {
		j := masked(m, uint32(i))
		b[i], b[j] = b[j], b[i]
	}
}

// Perm writes np.random.permutation(len(dst)) into dst.
func (m *Legacy) Perm(dst []int32) { perm(m, dst) }

// Choice returns np.random.choice(n, k, replace=False): the first k entries
// of a permutation of n, whose draws are all consumed. scratch is used when
// it is large enough. It panics unless 0 <= k <= n.
func (m *Legacy) Choice(n, k int, scratch []int32) []int32 {
	if k < 0 || k > n {
		panic("rng: Choice needs 0 <= k <= n")
	}
	if cap(scratch) < n {
		scratch = make([]int32, n)
	}
	scratch = scratch[:n]
	perm(m, scratch)
	return scratch[:k]
}

// MarshalBinary encodes the stream's position: version, state words, index,
// little-endian.
func (m *Legacy) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, 4*(mtLen+1)+4), "MT1\n"...)
	for _, v := range m.state {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(m.pos)), nil
}

// UnmarshalBinary restores what MarshalBinary wrote.
func (m *Legacy) UnmarshalBinary(b []byte) error {
	const want = 4 + 4*mtLen + 4
	if len(b) != want || string(b[:4]) != "MT1\n" {
		return fmt.Errorf("restore MT19937 stream: %d bytes that do not start with MT1, expected %d that do", len(b), want)
	}
	pos := binary.LittleEndian.Uint32(b[want-4:])
	if pos > mtLen {
		return fmt.Errorf("restore MT19937 stream: position is %d, expected at most %d", pos, mtLen)
	}
	for i := range m.state {
		m.state[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	m.pos = int(pos)
	return nil
}

// source gives 32-bit outputs.
type source interface{ Uint32() uint32 }

// masked draws uniformly from [0, max]: outputs are masked with the smallest
// 2^k-1 >= max, and larger ones rejected. max = 0 draws nothing.
func masked[S source](s S, max uint32) uint32 {
	if max == 0 {
		return 0
	}
	mask := uint32(1)<<bits.Len32(max) - 1
	for {
		if v := s.Uint32() & mask; v <= max {
			return v
		}
	}
}

func perm[S source](s S, dst []int32) {
	for i := range dst {
		dst[i] = int32(i)
	}
	for i := len(dst) - 1; i > 0; i-- {
		j := masked(s, uint32(i))
		dst[i], dst[j] = dst[j], dst[i]
	}
}
