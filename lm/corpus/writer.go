package corpus

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// shardWriter writes the shards of one split.
type shardWriter struct {
	dir, split string
	width      int64 // bytes of a token
	most       int64 // tokens of a shard

	file  *os.File
	out   *bufio.Writer
	count int64 // tokens in file
	files []FileInfo
	Counts
}

// put appends the tokens of a segment. It begins no more files once ctx is
// done: of tiny ones a segment may need thousands, and each is waited for.
func (w *shardWriter) put(ctx context.Context, seg segment, ids []int32) error {
	if seg.first {
		w.Documents++
	}
	w.Bytes += int64(seg.end - seg.start)
	w.Tokens += int64(len(ids))
	for len(ids) > 0 {
		if w.file == nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.begin(); err != nil {
				return err
			}
		}
		part := ids[:min(int64(len(ids)), w.most-w.count)]
		if err := w.write(part); err != nil {
			return fmt.Errorf("write dataset: %w", err)
		}
		w.count += int64(len(part))
		ids = ids[len(part):]
		if w.count == w.most {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *shardWriter) write(ids []int32) error {
	for _, id := range ids {
		b := w.out.AvailableBuffer()
		if w.width == 2 {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
		if _, err := w.out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (w *shardWriter) begin() (err error) {
	name := fmt.Sprintf("%s_%03d.bin", w.split, len(w.files))
	if w.file, err = os.Create(filepath.Join(w.dir, name)); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	w.out = bufio.NewWriterSize(w.file, 1<<20)
	w.count = 0
	if _, err = w.out.Write(appendHeader(nil, 0, w.width)); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// end completes the header and brings the shard to the disk.
func (w *shardWriter) end() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	err := w.out.Flush()
	if err == nil {
		_, err = f.WriteAt(appendHeader(nil, w.count, w.width), 0)
	}
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, io.NewSectionReader(f, 0, headerBytes+w.count*w.width))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	w.files = append(w.files, FileInfo{Name: filepath.Base(f.Name()), Bytes: headerBytes + w.count*w.width, SHA256: hex.EncodeToString(h.Sum(nil)), Tokens: w.count})
	return nil
}

// drop closes what is open.
func (w *shardWriter) drop() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}
