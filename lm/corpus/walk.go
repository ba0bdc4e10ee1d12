package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"deeploop/lm/tokens"
)

// errStop ends a walk early without being an error.
var errStop = errors.New("stop")

// walker goes over all documents of the sources in order.
type walker struct {
	sources  []source
	textKey  string
	progress func(done, total int64) // stored bytes; may be nil
	repairs  int64                   // documents with half surrogates

	done, total int64
}

func newWalker(sources []source, textKey string, progress func(done, total int64)) *walker {
	w := &walker{sources: sources, textKey: textKey, progress: progress}
	for _, s := range sources {
		w.total += s.size
	}
	return w
}

// each calls visit with every document. Errors of visit that are not about
// reading are returned as they are.
func (w *walker) each(ctx context.Context, visit func(s source, text *docText) error) error {
	for _, s := range w.sources {
		err := w.file(ctx, s, visit)
		if err == errStop {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// docText is the text of one document; errors of reading say where they are.
type docText struct {
	ctx  context.Context
	r    io.Reader
	wrap func(error) error
}

func (d *docText) Read(b []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := d.r.Read(b)
	if err != nil && err != io.EOF {
		err = d.wrap(err)
	}
	return n, err
}

func (w *walker) file(ctx context.Context, s source, visit func(source, *docText) error) (err error) {
	start := w.done
	docs, err := s.open(w.textKey, func(n int64) { w.advance(min(w.done+n, start+s.size)) })
	if err != nil {
		return err
	}
	defer func() {
		if l, ok := docs.(*lines); ok {
			w.repairs += l.repairs
		}
		if e := docs.close(); e != nil && err == nil {
			err = inputErrorf("read %s: %w", s.path, e)
		}
	}()
	wrap := func(err error) error { return inputErrorf("read %s: %s: %w", s.path, docs.where(), err) }
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := docs.next()
		if err == io.EOF {
			w.advance(start + s.size)
			return nil
		}
		if err != nil {
			return wrap(err)
		}
		if err := visit(s, &docText{ctx, r, wrap}); err != nil {
			return err
		}
	}
}

func (w *walker) advance(done int64) {
	w.done = done
	if w.progress != nil {
		w.progress(done, w.total)
	}
}

// headBytes of a document, or all of a shorter one, decide its split.
const headBytes = 256 << 10

// docKey is a hash of the beginning of a document.
func docKey(seed uint64, head []byte) uint64 {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, seed))
	h.Write(head)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// rule decides which documents are val.
type rule struct {
	below  uint64 // keys below are val
	single bool   // there is one document, cut in two at cutAt
	cutAt  int64  // where val begins, in bytes of the text
	length int64  // of a single document
}

func (r rule) val(key uint64) bool { return key < r.below }

// belowOf is the bound of keys for a share of them.
func belowOf(fraction float64) uint64 {
	return uint64(math.Min(fraction*(1<<64), math.MaxUint64))
}

// survey finds out what the split and the tokenizer depend on. It reads no
// more than that needs: with several documents and no set of characters to
// collect, until one of each split is found.
type survey struct {
	documents int64 // that are not empty, as far as was read
	first     int64 // bytes of the first of these
	minKey    uint64
	maxKey    uint64
}

// look walks over the documents. chars, if given, is told all text.
func (v *survey) look(ctx context.Context, w *walker, set Settings, fraction float64, chars func([]byte)) error {
	below := belowOf(fraction)
	v.minKey = math.MaxUint64
	buf := make([]byte, headBytes+utf8Slack)
	err := w.each(ctx, func(s source, text *docText) error {
		n, err := io.ReadFull(text, buf[:headBytes])
		if n == 0 && err == io.EOF {
			return nil
		}
		more := err == nil
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		v.documents++
		key := docKey(set.Seed, buf[:n])
		v.minKey, v.maxKey = min(v.minKey, key), max(v.maxKey, key)
		length := int64(n)
		switch {
		case chars == nil && s.kind == textFile && s.compress == "":
			length = s.size
		case chars != nil || v.documents == 1:
			rest, err := v.rest(text, buf, n, more, chars)
			if err != nil {
				return err
			}
			length += rest
		}
		if v.documents == 1 {
			v.first = length
		}
		if chars == nil && v.documents > 1 && (fraction == 0 || v.minKey < below && v.maxKey >= below) {
			return errStop
		}
		return nil
	})
	if err == nil && v.documents == 0 {
		return inputErrorf("prepare: there is no text in the input: all documents are empty")
	}
	return err
}

// utf8Slack is room for a character that a buffer ends in.
const utf8Slack = 4

// rest reads the rest of a document whose first n bytes are in buf.
func (v *survey) rest(text *docText, buf []byte, n int, more bool, chars func([]byte)) (int64, error) {
	var length int64
	for {
		keep := 0
		if chars != nil {
			cut := n
			if more {
				cut = tokens.CutUTF8(buf[:n])
			}
			chars(buf[:cut])
			keep = copy(buf, buf[cut:n])
		}
		if !more {
			return length, nil
		}
		k, err := io.ReadFull(text, buf[keep:headBytes])
		length += int64(k)
		n, more = keep+k, err == nil
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return length, err
		}
	}
}

// decide makes the rule: keys below the fraction are val, and where that
// leaves a split empty the document of the lowest key is val, or that of the
// highest train. Documents that are all the same are train.
func (v *survey) decide(fraction float64) (r rule, warning string) {
	switch {
	case fraction == 0:
		return rule{}, ""
	case v.documents == 1 && int64(float64(v.first)*(1-fraction)) == 0:
		return rule{}, "the only document is too short to cut a part for val off"
	case v.documents == 1:
		return rule{single: true, length: v.first, cutAt: int64(float64(v.first) * (1 - fraction))}, ""
	}
	r.below = belowOf(fraction)
	if r.below <= v.minKey {
		r.below = v.minKey + 1
	}
	if r.below > v.maxKey {
		r.below = v.maxKey
	}
	if v.minKey == v.maxKey {
		return rule{}, fmt.Sprintf("all %d documents are the same, so there is no val", v.documents)
	}
	return r, ""
}
