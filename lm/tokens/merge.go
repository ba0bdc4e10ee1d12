package tokens

import (
	"math"
	"slices"
)

// noMerge is the rank of pairs that do not merge.
const noMerge = math.MaxInt32

// pairTable maps two neighbouring tokens to the one that they merge into:
// open addressing, at most half full.
type pairTable struct {
	keys   []uint32 // left*vocabulary + right
	merged []uint16 // 0: free; token 0 is a byte
	shift  uint
	bytes  [1 << 16]uint16 // the same for the ids of two bytes, by the bytes
}

// gpt2Vocab is the number of tokens of text.
const gpt2Vocab = 50256

// newPairTable takes all ways to put a token together from two others.
func newPairTable(texts []string, ids map[string]int32) *pairTable {
	type entry struct {
		key    uint32
		merged uint16
	}
	var entries []entry
	t := &pairTable{}
	for id, text := range texts {
		for k := 1; k < len(text); k++ {
			left, ok := ids[text[:k]]
			if !ok {
				continue
			}
			right, ok := ids[text[k:]]
			if !ok {
				continue
			}
			if len(text) == 2 {
				t.bytes[int(text[0])<<8|int(text[1])] = uint16(id)
			}
			entries = append(entries, entry{pairKey(left, right), uint16(id)})
		}
	}
	bits := uint(1)
	for 1<<bits < 2*len(entries) {
		bits++
	}
	t.shift = 32 - bits
	t.keys, t.merged = make([]uint32, 1<<bits), make([]uint16, 1<<bits)
	for _, e := range entries {
		i := t.slot(e.key)
		for t.merged[i] != 0 {
			i = (i + 1) & (len(t.keys) - 1)
		}
		t.keys[i], t.merged[i] = e.key, e.merged
	}
	return t
}

func pairKey(left, right int32) uint32 { return uint32(left)*gpt2Vocab + uint32(right) }

func (t *pairTable) slot(key uint32) int { return int(key * 0x9E3779B1 >> t.shift) }

// rank returns the token that a pair merges into, noMerge without one. Tokens
// are numbered in the order in which training merged them, so lower goes first.
func (t *pairTable) rank(left, right int32) int32 {
	key := pairKey(left, right)
	for i := t.slot(key); ; i = (i + 1) & (len(t.keys) - 1) {
		if t.merged[i] == 0 {
			return noMerge
		}
		if t.keys[i] == key {
			return int32(t.merged[i])
		}
	}
}

func (t *pairTable) byteRank(a, b byte) int32 {
	if m := t.bytes[int(a)<<8|int(b)]; m != 0 {
		return int32(m)
	}
	return noMerge
}

// shortPiece is the longest piece merged by searching all its pairs each time.
const shortPiece = 64

// appendMerged appends the tokens of a piece of at least two bytes: of all
// neighbours the pair of the lowest rank is merged, the leftmost of equals,
// until none merges.
func (g *gpt2Tokenizer) appendMerged(dst []int32, piece []byte) []int32 {
	if len(piece) > shortPiece {
		return g.appendMergedLong(dst, piece)
	}
	var idStore, rankStore [shortPiece]int32
	n := len(piece)
	ids, ranks := idStore[:n], rankStore[:n] // ranks[i]: of ids[i] and ids[i+1]
	for i, b := range piece {
		ids[i] = g.byteID[b]
		ranks[i] = noMerge
		if i+1 < n {
			ranks[i] = g.pairs.byteRank(b, piece[i+1])
		}
	}
	for {
		best, at := int32(noMerge), 0
		for i, r := range ranks[:n] {
			if r < best {
				best, at = r, i
			}
		}
		if best == noMerge {
			return append(dst, ids[:n]...)
		}
		ids[at] = best
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(ranks[at:n-1], ranks[at+1:n])
		n--
		if at+1 < n {
			ranks[at] = g.pairs.rank(ids[at], ids[at+1])
		} else {
			ranks[at] = noMerge
		}
		if at > 0 {
			ranks[at-1] = g.pairs.rank(ids[at-1], ids[at])
		}
	}
}

// appendMergedLong does the same with a heap of pairs, in n log n.
func (g *gpt2Tokenizer) appendMergedLong(dst []int32, piece []byte) []int32 {
	n := len(piece)
	ids, ranks := make([]int32, n), make([]int32, n) // at the first byte of each token
	next, prev := make([]int32, n), make([]int32, n)
	queue := make(pairHeap, 0, n)
	for i, b := range piece {
		ids[i], ranks[i] = g.byteID[b], noMerge
		next[i], prev[i] = int32(i)+1, int32(i)-1
		if i+1 < n {
			if ranks[i] = g.pairs.byteRank(b, piece[i+1]); ranks[i] != noMerge {
				queue = append(queue, heapEntry(ranks[i], int32(i)))
			}
		}
	}
	slices.Sort(queue) // sorted is a heap
	rerank := func(at int32) {
		ranks[at] = noMerge
		if right := next[at]; int(right) < n {
			if ranks[at] = g.pairs.rank(ids[at], ids[right]); ranks[at] != noMerge {
				queue.push(heapEntry(ranks[at], at))
			}
		}
	}
	for len(queue) > 0 {
		rank, at := queue.pop()
		if ranks[at] != rank {
			continue // merged away, or its pair has changed
		}
		gone := next[at]
		ids[at], ranks[gone] = rank, noMerge
		next[at] = next[gone]
		if int(next[at]) < n {
			prev[next[at]] = at
		}
		rerank(at)
		if left := prev[at]; left >= 0 {
			rerank(left)
		}
	}
	for i := int32(0); int(i) < n; i = next[i] {
		dst = append(dst, ids[i])
	}
	return dst
}

// pairHeap is a binary heap of pairs: the lowest rank first, then the leftmost.
type pairHeap []uint64

func heapEntry(rank, at int32) uint64 { return uint64(rank)<<32 | uint64(at) }

func (h *pairHeap) push(e uint64) {
	q := append(*h, e)
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q[parent] <= e {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = e
	*h = q
}

func (h *pairHeap) pop() (rank, at int32) {
	q := *h
	top, e := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	if len(q) > 0 {
		i := 0
		for {
			child := 2*i + 1
			if child >= len(q) {
				break
			}
			if child+1 < len(q) && q[child+1] < q[child] {
				child++
			}
			if q[child] >= e {
				break
			}
			q[i] = q[child]
			i = child
		}
		q[i] = e
	}
	*h = q
	return int32(top >> 32), int32(uint32(top))
}
