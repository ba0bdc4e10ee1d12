package corpus

import (
	"context"
	"errors"
	"io"
	"sync"

	"deeploop/lm/tokens"
)

// chunkBytes of text are tokenized at a time. More than tokens.MinCut, so that
// each has a place to cut a long document at.
const chunkBytes = headBytes

// segment is a part of a document inside a job.
type segment struct {
	start, end int // in the job's text
	val        bool
	first      bool // begins a document
	tokens     int  // in the job's ids, filled by a worker
}

// job is text to tokenize: parts of documents, in order.
type job struct {
	text     []byte
	segments []segment
	ids      []int32
	bad      error         // a character without a token
	ready    chan struct{} // closed when ids are there
}

// pipeline tokenizes documents on several threads and hands tokens on in the
// order of the text, so that the result does not depend on the threads.
type pipeline struct {
	tokenizer tokens.Tokenizer
	rule      rule
	seed      uint64
	separator int32 // -1: none
	threads   int

	work  chan *job
	order chan *job
	free  sync.Pool
	now   *job
}

// run walks over the documents and calls put with the tokens of each segment.
// Calls do not overlap.
func (p *pipeline) run(ctx context.Context, w *walker, count func(s source, empty bool), put func(seg segment, ids []int32) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.work, p.order = make(chan *job, p.threads), make(chan *job, 2*p.threads)
	var workers sync.WaitGroup
	for range p.threads {
		workers.Go(func() {
			for j := range p.work {
				p.tokenize(j)
				close(j.ready)
			}
		})
	}
	var readErr error
	workers.Go(func() {
		defer close(p.work)
		defer close(p.order)
		readErr = w.each(ctx, func(s source, text *docText) error {
			empty, err := p.document(ctx, text)
			if err == nil {
				count(s, empty)
			}
			return err
		})
		if readErr == nil {
			readErr = p.send(ctx)
		}
	})
	var putErr error
	for j := range p.order {
		<-j.ready
		if putErr == nil && j.bad != nil {
			putErr = inputErrorf("prepare: the input changed while it was read: %w", j.bad)
		}
		at := 0
		for _, seg := range j.segments {
			if putErr == nil {
				putErr = put(seg, j.ids[at:at+seg.tokens])
			}
			at += seg.tokens
		}
		if putErr != nil {
			cancel() // the reader stops; what is in flight is dropped
		}
		p.free.Put(j)
	}
	workers.Wait()
	if putErr != nil {
		return putErr
	}
	return readErr
}

func (p *pipeline) tokenize(j *job) {
	j.ids, j.bad = j.ids[:0], nil
	for i := range j.segments {
		seg := &j.segments[i]
		before := len(j.ids)
		text := j.text[seg.start:seg.end]
		if seg.first && p.separator >= 0 {
			j.ids = append(j.ids, p.separator)
		}
		j.ids = p.tokenizer.Append(j.ids, text)
		seg.tokens = len(j.ids) - before
		if j.bad == nil {
			j.bad = p.tokenizer.Check(text)
		}
	}
}

// send gives the current job to the workers.
func (p *pipeline) send(ctx context.Context) error {
	j := p.now
	if j == nil || len(j.segments) == 0 {
		return nil
	}
	p.now = nil
	j.ready = make(chan struct{})
	select { // first the order, so that no job waits for one that is not in it
	case p.order <- j:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.work <- j // workers always take it
	return nil
}

// room returns the current job with room for n bytes.
func (p *pipeline) room(ctx context.Context, n int) (*job, error) {
	if p.now != nil && len(p.now.text)+n > 2*chunkBytes {
		if err := p.send(ctx); err != nil {
			return nil, err
		}
	}
	if p.now == nil {
		j, _ := p.free.Get().(*job)
		if j == nil {
			j = &job{text: make([]byte, 0, 2*chunkBytes)}
		}
		j.text, j.segments = j.text[:0], j.segments[:0]
		p.now = j
	}
	return p.now, nil
}

// document cuts a document into chunks.
func (p *pipeline) document(ctx context.Context, text *docText) (empty bool, err error) {
	if p.rule.single {
		left, n, err := p.part(ctx, io.LimitReader(text, p.rule.cutAt), nil, func([]byte) bool { return false }, true)
		if err != nil {
			return false, err
		}
		_, m, err := p.part(ctx, text, left, func([]byte) bool { return true }, false)
		if err != nil {
			return false, err
		}
		switch n + m {
		case 0:
			return true, nil // an empty one beside the single one
		case p.rule.length:
		default:
			return false, text.wrap(errors.New("the file changed while it was read"))
		}
		return false, nil
	}
	_, n, err := p.part(ctx, text, nil, func(head []byte) bool { return p.rule.val(docKey(p.seed, head)) }, false)
	return n == 0, err
}

// part cuts one split's part of a document into chunks; begun is text before
// it, n is how many bytes were read. With keep a character that is begun at the
// end is left over. isVal is asked once, with the beginning.
func (p *pipeline) part(ctx context.Context, r io.Reader, begun []byte, isVal func(head []byte) bool, keep bool) (left []byte, n int64, err error) {
	carry := append([]byte(nil), begun...)
	first, val := true, false
	for {
		j, err := p.room(ctx, chunkBytes)
		if err != nil {
			return nil, n, err
		}
		start := len(j.text)
		buf := append(j.text, carry...)[start : start+chunkBytes]
		k, err := io.ReadFull(r, buf[len(carry):])
		n += int64(k)
		last := err != nil
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, n, err
		}
		buf = buf[:len(carry)+k]
		if len(buf) == 0 {
			return nil, n, nil
		}
		if first {
			val = isVal(buf)
		}
		cut := len(buf)
		switch {
		case !last:
			cut = p.tokenizer.Cut(buf)
		case keep:
			cut = tokens.CutUTF8(buf)
		}
		carry = append(carry[:0], buf[cut:]...)
		if cut > 0 {
			j.text = j.text[:start+cut]
			j.segments = append(j.segments, segment{start: start, end: start + cut, val: val, first: first})
			first = false
		}
		if last {
			if keep {
				return carry, n, nil
			}
			return nil, n, nil
		}
	}
}
