package profile

import "deeploop/internal/kernel"

// Group is a kind of work.
type Group uint8

// Groups. Products and attention count operations and are compared with the
// products the machine makes at best, the others count bytes and are compared
// with its copies.
const (
	Products Group = iota
	Attention
	Other
)

func (g Group) String() string { return [...]string{"products", "attention", "other kernels"}[g] }

// work is what one call has to do.
//
// Operations: a product [M,K]·[K,N] is 2·M·N·K of them, attention 4·B·Q·N·T·K
// for Q positions that ask T, half of that where it is causal, and 2.5 times
// as many backward. Other kernels count none.
//
// Bytes: every operand once, read or written; one that is added to counts
// twice. A weight counts in the type of the activations, as its packed copy
// is read. What a kernel moves within the caches does not count, so GB/s may
// exceed what memory gives where operands stay in a cache.
type work struct{ flops, bytes float64 }

func size(bufs ...kernel.Buf) (n float64) {
	for _, b := range bufs {
		n += float64(b.Len() * b.Type().Size())
	}
	return n
}

// product is the work on an m·n by m·k pair; moved are the bytes of the three
// operands.
func product(m, n, k int, moved float64) work {
	return work{2 * float64(m) * float64(n) * float64(k), moved}
}

// weight is the packed copy that activations of x's type meet.
func weight(w *kernel.Weight, x kernel.Buf) float64 {
	return float64(w.Rows * w.Cols * x.Type().Size())
}

// twice is the size of a destination, doubled where it is added to.
func twice(b kernel.Buf, accumulate bool) float64 {
	if accumulate {
		return 2 * size(b)
	}
	return size(b)
}

// attention is the forward work for the output o.
func attention(o kernel.Buf, s kernel.AttentionShape, moved float64) work {
	f := 4 * float64(o.Len()) * float64(s.T)
	if s.Causal {
		f /= 2
	}
	return work{f, moved}
}

// embedBytes is what goes in: a row of the table for every token, task
// embeddings, learned positions.
func embedBytes(a kernel.EmbedArgs) float64 {
	rows := float64(len(a.IDs) * a.D * a.Table.Type().Size())
	return rows + 4*float64(len(a.IDs)) + size(a.Puzzle, a.Pos)
}

// attentionCached is the work for s.T positions after the past ones: position t
// asks past+t+1 of them, the keys and values of all are read once, the new ones
// written.
func attentionCached(o, qkv, keys kernel.Buf, past int, s kernel.AttentionShape) work {
	asked := float64(s.T*past) + float64(s.T*(s.T+1))/2
	row := float64(s.N * s.K * keys.Type().Size())
	tables := 0.0
	if !s.Cos.Absent() {
		tables = float64(s.T * s.K * s.Cos.Type().Size())
	}
	return work{4 * asked * float64(s.N*s.K), size(o, qkv) + 2*row*float64(past+2*s.T) + tables}
}
