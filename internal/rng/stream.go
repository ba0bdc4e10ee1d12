package rng

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Stream is a named source of random numbers whose position can be written to
// a checkpoint and restored. Streams of one seed with different names are
// independent, so that adding a draw to one leaves the others alone.
//
// A Stream is not safe for concurrent use.
type Stream struct {
	*rand.Rand
	name string
	src  *rand.ChaCha8
}

// NewStream returns the stream called name of the given seed: ChaCha8 keyed
// with the SHA-256 of both.
func NewStream(seed uint64, name string) *Stream {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], seed)
	key := sha256.Sum256(append(raw[:], name...))
	src := rand.NewChaCha8(key)
	return &Stream{Rand: rand.New(src), name: name, src: src}
}

// Name returns the name given to NewStream.
func (s *Stream) Name() string { return s.name }

// MarshalText writes the position as one line of text, which is also its JSON
// form.
func (s *Stream) MarshalText() ([]byte, error) {
	b, err := s.src.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText moves the stream to a position written by MarshalText. The
// stream must come from NewStream.
func (s *Stream) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err == nil {
		err = s.src.UnmarshalBinary(b)
	}
	if err != nil {
		return fmt.Errorf("restore random stream %s: %w", s.name, err)
	}
	return nil
}
