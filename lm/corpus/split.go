package corpus

import (
	"errors"
	"fmt"
	"sort"
	"sync"
)

// Split is a sequence of tokens over one or several shards. Its methods may
// run at the same time.
type Split struct {
	Name   string // train or val
	shards []*shard
	starts []int64 // of each shard, and the end
	vocab  int32
}

func (s *Split) add(sh *shard, vocab int) {
	if s.starts == nil {
		s.starts = []int64{0}
	}
	s.shards = append(s.shards, sh)
	s.starts = append(s.starts, s.Len()+sh.count)
	s.vocab = int32(vocab)
}

// Len is the number of tokens.
func (s *Split) Len() int64 {
	if s == nil || len(s.starts) == 0 {
		return 0
	}
	return s.starts[len(s.starts)-1]
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Read reads the len(dst) tokens from number at on, which must exist. A token
// outside the vocabulary is an error.
func (s *Split) Read(dst []int32, at int64) error {
	if at < 0 || at+int64(len(dst)) > s.Len() {
		return fmt.Errorf("read tokens: %s has %d, asked for %d from number %d on", s.Name, s.Len(), len(dst), at)
	}
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	if need := 4 * len(dst); cap(*buf) < need {
		*buf = make([]byte, need)
	}
	i := sort.Search(len(s.shards), func(i int) bool { return s.starts[i+1] > at })
	for ; len(dst) > 0; i++ {
		sh, from := s.shards[i], at-s.starts[i]
		part := dst[:min(int64(len(dst)), sh.count-from)]
		if err := sh.read(part, from, (*buf)[:cap(*buf)]); err != nil {
			return err
		}
		for k, id := range part {
			if id < 0 || id >= s.vocab {
				return sh.beyond(from+int64(k), id, s.vocab)
			}
		}
		dst, at = dst[len(part):], at+int64(len(part))
	}
	return nil
}

// beyond is the error about an id outside the vocabulary.
func (s *shard) beyond(at int64, id, vocab int32) error {
	return inputErrorf("read tokens %s: token %d, at byte %d, is %d, expected ids below %d; the file is of another tokenizer or format",
		s.path, at, s.offset+at*s.width, uint32(id), vocab)
}

func (s *Split) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, sh := range s.shards {
		if sh.file != nil {
			errs = append(errs, sh.file.Close())
		}
	}
	return errors.Join(errs...)
}
