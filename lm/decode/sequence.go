package decode

import "context"

// chunk is how many tokens go to the model between two looks at the context:
// enough rows for fast products, few enough to be stopped within a second.
const chunk = 256

// extend appends ids in chunks. each is as in Decoder.Append.
func extend(ctx context.Context, d Decoder, ids []int32, from int, each func(i int, logits []float32) error) error {
	for start := 0; start < len(ids); start += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := ids[start:min(start+chunk, len(ids))]
		var at func(i int, logits []float32) error
		if each != nil {
			at = func(i int, logits []float32) error { return each(start+i, logits) }
		}
		if err := d.Append(part, max(0, from-start), at); err != nil {
			return err
		}
	}
	return nil
}

// Sequence remembers which tokens a decoder's cache holds, so that sequences
// that begin alike share the work of their beginning.
type Sequence struct {
	d   Decoder
	ids []int32
}

// NewSequence begins with an empty cache.
func NewSequence(d Decoder) *Sequence {
	d.Reset(0)
	return &Sequence{d: d}
}

// Set makes the cache hold ids, and calls each for the positions i >= from,
// as Decoder.Append does. What the cache holds already of ids[:from] is kept.
// Logits after a kept beginning may differ in their last bits from those of a
// fresh sequence, as the model sees other numbers of rows at a time.
func (s *Sequence) Set(ctx context.Context, ids []int32, from int, each func(i int, logits []float32) error) error {
	same := 0
	for same < min(from, len(ids), len(s.ids)) && ids[same] == s.ids[same] {
		same++
	}
	s.d.Reset(same)
	s.ids = append(s.ids[:same], ids[same:]...)
	err := extend(ctx, s.d, ids[same:], from-same, func(i int, logits []float32) error {
		return each(same+i, logits)
	})
	if err != nil {
		s.d.Reset(0)
		s.ids = s.ids[:0]
	}
	return err
}
