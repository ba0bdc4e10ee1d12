// Package decodetest has a model and a tokenizer for tests of what uses
// package decode.
package decodetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// Model is a decoder whose logits are a function of all tokens so far, so
// that a wrong cache shows.
type Model struct {
	MaxLen, Vocab int
	// Logits fills dst [V] with the logits after ids; nil is Hashed.
	Logits func(ids []int32, dst []float32)
	// Before is called at every Append, and can wait or fail.
	Before func(ids []int32) error

	ids  []int32
	Read int // tokens appended so far, over all sequences
}

// Context returns MaxLen.
func (m *Model) Context() int { return m.MaxLen }

// VocabSize returns Vocab.
func (m *Model) VocabSize() int { return m.Vocab }

// Len is the number of tokens in the cache.
func (m *Model) Len() int { return len(m.ids) }

// Reset forgets all but the first n tokens.
func (m *Model) Reset(n int) {
	if n > len(m.ids) {
		panic("decodetest: Reset to more tokens than there are")
	}
	m.ids = m.ids[:n]
}

// Append is Decoder.Append.
func (m *Model) Append(ids []int32, from int, each func(i int, logits []float32) error) error {
	if m.Before != nil {
		if err := m.Before(ids); err != nil {
			return err
		}
	}
	if len(m.ids)+len(ids) > m.MaxLen {
		return errors.New("decodetest: more tokens than the context has")
	}
	logits := make([]float32, m.Vocab)
	for i, id := range ids {
		if id < 0 || int(id) >= m.Vocab {
			return fmt.Errorf("decodetest: id %d", id)
		}
		m.ids = append(m.ids, id)
		m.Read++
		if i < from || each == nil {
			continue
		}
		if m.Logits != nil {
			m.Logits(m.ids, logits)
		} else {
			Hashed(m.ids, logits)
		}
		if err := each(i, logits); err != nil {
			return err
		}
	}
	clear(logits) // "valid during the call only"
	return nil
}

// Hashed are logits between -4 and 4 that depend on every token.
func Hashed(ids []int32, dst []float32) {
	h := fnv.New64a()
	var b [4]byte
	for _, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	x := h.Sum64()
	for i := range dst {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		dst[i] = float32(int64(x>>40)-1<<23) / (1 << 21)
	}
}

// Follow are logits that make the token after each id of text the next byte
// of it, by far, and the separator after its end. It suits Bytes.
func Follow(text string) func(ids []int32, dst []float32) {
	next := map[byte]byte{}
	for i := 1; i < len(text); i++ {
		next[text[i-1]] = text[i]
	}
	return func(ids []int32, dst []float32) {
		clear(dst)
		want := Separator
		last := ids[len(ids)-1]
		if last == Separator && text != "" {
			want = int32(text[0])
		} else if last < 256 && byte(last) != text[len(text)-1] {
			if b, ok := next[byte(last)]; ok {
				want = int32(b)
			}
		}
		dst[want] = 20
	}
}

// Separator is the last id of Bytes.
const Separator int32 = 256

// Bytes is a tokenizer of bytes with a separator, 257 ids.
type Bytes struct {
	NoSeparator bool
	Unknown     string // Check refuses text with one of these bytes
}

// Name is "bytes".
func (Bytes) Name() string { return "bytes" }

// VocabSize is 257, or 256 without a separator.
func (b Bytes) VocabSize() int {
	if b.NoSeparator {
		return 256
	}
	return 257
}

// Separator is 256, or -1 without one.
func (b Bytes) Separator() int32 {
	if b.NoSeparator {
		return -1
	}
	return Separator
}

// Check refuses what Unknown names.
func (b Bytes) Check(text []byte) error {
	if i := bytes.IndexAny(text, b.Unknown); i >= 0 {
		return fmt.Errorf("character %q at byte %d is not in the vocabulary", text[i], i)
	}
	return nil
}

// Append adds one id per byte.
func (Bytes) Append(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

// AppendBytes is the inverse of Append; the separator has no bytes.
func (Bytes) AppendBytes(dst []byte, ids ...int32) []byte {
	for _, id := range ids {
		if id >= 0 && id < 256 {
			dst = append(dst, byte(id))
		}
	}
	return dst
}

// Len is the number of bytes of id.
func (Bytes) Len(id int32) int {
	if id >= 0 && id < 256 {
		return 1
	}
	return 0
}
