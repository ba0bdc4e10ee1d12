package rng

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Philox is numpy's Generator(Philox(seed)): Philox4x64 with ten rounds
// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), keyed
// through numpy's SeedSequence.
type Philox struct {
	key     [2]uint64
	counter [4]uint64
	buf     [4]uint64
	pos     int    // next word of buf; 4: generate first
	half    uint32 // upper half of the last word split for Uint32
	hasHalf bool
}

// NewPhilox returns the stream of np.random.Generator(np.random.Philox(seed=seed)).
func NewPhilox(seed uint64) *Philox {
	return &Philox{key: seedKey(seed), pos: 4}
}

// Key returns the Philox key.
func (p *Philox) Key() [2]uint64 { return p.key }

// Counter returns the Philox counter; a fresh stream has all zeros.
func (p *Philox) Counter() [4]uint64 { return p.counter }

// Uint64 returns the next raw output.
func (p *Philox) Uint64() uint64 {
	if p.pos == 4 {
		for i := range p.counter {
			p.counter[i]++
			if p.counter[i] != 0 {
				break
			}
		}
		p.buf = philoxBlock(p.counter, p.key)
		p.pos = 0
	}
	v := p.buf[p.pos]
	p.pos++
	return v
}

// Uint32 returns half of a 64-bit output: the low half first, the high half
// at the next call. Uint64 calls in between leave the kept half alone.
func (p *Philox) Uint32() uint32 {
	if p.hasHalf {
		p.hasHalf = false
		return p.half
	}
	v := p.Uint64()
	p.half, p.hasHalf = uint32(v>>32), true
	return uint32(v)
}

// Intn returns a uniform integer of [0, n), as Generator.integers(0, n): by
// Lemire's multiply and shift with rejection ("Fast random integer generation
// in an interval", 2019). A range of one value draws nothing. It panics unless
// 0 < n < 2^32.
func (p *Philox) Intn(n int) int {
	if n <= 0 || uint64(n) >= 1<<32 {
		panic("rng: Intn needs 0 < n < 2^32")
	}
	if n == 1 {
		return 0
	}
	bound := uint32(n)
	m := uint64(p.Uint32()) * uint64(bound)
	if low := uint32(m); low < bound {
		for threshold := -bound % bound; low < threshold; low = uint32(m) {
			m = uint64(p.Uint32()) * uint64(bound)
		}
	}
	return int(m >> 32)
}

// Perm writes Generator.permutation(len(dst)) into dst.
func (p *Philox) Perm(dst []int32) { perm(p, dst) }

// philoxBlock is one application of the ten-round bijection.
func philoxBlock(c [4]uint64, k [2]uint64) [4]uint64 {
	for range 10 {
		hi0, lo0 := bits.Mul64(0xD2E7470EE14C6C93, c[0])
		hi1, lo1 := bits.Mul64(0xCA5A826395121157, c[2])
		c = [4]uint64{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0] += 0x9E3779B97F4A7C15
		k[1] += 0xBB67AE8584CAA73B
	}
	return c
}

// seedKey is SeedSequence(seed).generate_state(2, uint64): the seed's 32-bit
// words are hashed into a pool of four, every word is mixed into every other,
// and the pool is hashed out again.
func seedKey(seed uint64) [2]uint64 {
	words := []uint32{uint32(seed)}
	if seed > 0xffffffff {
		words = append(words, uint32(seed>>32))
	}
	h := uint32(0x43b0d7e5)
	hash := func(v uint32) uint32 {
		v ^= h
		h *= 0x931e8875
		v *= h
		return v ^ v>>16
	}
	var pool [4]uint32
	for i := range pool {
		var w uint32
		if i < len(words) {
			w = words[i]
		}
		pool[i] = hash(w)
	}
	for src := range pool {
		for dst := range pool {
			if src != dst {
				v := 0xca01f9dd*pool[dst] - 0x4973f715*hash(pool[src])
				pool[dst] = v ^ v>>16
			}
		}
	}
	var out [4]uint32
	h = 0x8b51f9dd
	for i, v := range pool {
		v ^= h
		h *= 0x58f38ded
		v *= h
		out[i] = v ^ v>>16
	}
	return [2]uint64{uint64(out[0]) | uint64(out[1])<<32, uint64(out[2]) | uint64(out[3])<<32}
}

const philoxSize = 4 + 8*(2+4+4) + 1 + 1 + 4

// MarshalBinary encodes the stream's position: version, key, counter, buffer,
// index in the buffer, whether a half word is kept, and it; little-endian.
func (p *Philox) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, philoxSize), "PX1\n"...)
	for _, s := range [][]uint64{p.key[:], p.counter[:], p.buf[:]} {
		for _, v := range s {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	kept := byte(0)
	if p.hasHalf {
		kept = 1
	}
	b = append(b, byte(p.pos), kept)
	return binary.LittleEndian.AppendUint32(b, p.half), nil
}

// UnmarshalBinary restores what MarshalBinary wrote.
func (p *Philox) UnmarshalBinary(b []byte) error {
	if len(b) != philoxSize || string(b[:4]) != "PX1\n" {
		return fmt.Errorf("restore Philox stream: %d bytes that do not start with PX1, expected %d that do", len(b), philoxSize)
	}
	var q Philox
	at := 4
	for _, s := range [][]uint64{q.key[:], q.counter[:], q.buf[:]} {
		for i := range s {
			s[i] = binary.LittleEndian.Uint64(b[at:])
			at += 8
		}
	}
	q.pos, q.hasHalf, q.half = int(b[at]), b[at+1] == 1, binary.LittleEndian.Uint32(b[at+2:])
	if q.pos > 4 || b[at+1] > 1 {
		return fmt.Errorf("restore Philox stream: position is %d, expected at most 4", q.pos)
	}
	*p = q
	return nil
}
