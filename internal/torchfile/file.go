package torchfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is an open state dict, or any other dict of tensors, whose tensors are
// read on request. It may be read by several goroutines.
type File struct {
	Path    string
	names   []string
	tensors map[string]Tensor
	data    map[string]*zip.File // by key of the storage
	f       *os.File
}

// zipMagic begins a zip archive with at least one file.
const zipMagic = "PK\x03\x04"

// Is reports whether a file begins like one that torch.save writes.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte(zipMagic)) }

// Open reads the description of the tensors. What is no dict of tensors is an
// *Error that says what was found.
func Open(name string) (*File, error) {
	f := &File{Path: name}
	if err := f.open(); err != nil {
		f.Close()
		var e *Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, &Error{name, err}
	}
	return f, nil
}

func (f *File) open() error {
	info, err := os.Stat(f.Path) // first: to open a pipe would wait
	if err != nil {
		return cause(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v)", info.Mode().Type())
	}
	if f.f, err = os.Open(f.Path); err != nil {
		return cause(err)
	}
	head := make([]byte, 512)
	n, err := f.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return cause(err)
	}
	if !Is(head[:n]) {
		return foreign(head[:n])
	}
	z, err := zip.NewReader(f.f, info.Size())
	if err != nil {
		return fmt.Errorf("it begins like a PyTorch file and is cut short or damaged (%w)", err)
	}
	described, err := f.index(z, info.Size())
	if err != nil {
		return err
	}
	raw, err := readAll(described, maxPickle)
	if err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	root, err := unpickle(raw)
	if err != nil {
		return err
	}
	return f.take(root)
}

// cause is an error of the system without the path, which Error adds.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// foreign says what a file is that is no zip archive.
func foreign(head []byte) error {
	has := func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) }
	switch {
	case len(head) == 0:
		return errors.New("it is empty")
	case has("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"):
		return errors.New("it has PyTorch's format from before version 1.6, which is not read; write it again with a newer PyTorch: torch.save(torch.load(FILE, map_location='cpu'), OTHER)")
	case has("version https://git-lfs"):
		return errors.New("it is a pointer of Git LFS, not the file itself; fetch that with git lfs pull")
	case has("<"):
		return errors.New("it is a web page, not a checkpoint: the download went wrong")
	case has("\x28\xb5\x2f\xfd"):
		return errors.New("it is compressed with zstd; unpack it first")
	case has("\x1f\x8b"):
		return errors.New("it is compressed with gzip; unpack it first")
	case has("\x80"):
		return errors.New("it is a bare pickle, not a zip archive as torch.save writes it since version 1.6")
	}
	return errors.New("it is neither a zip archive, as torch.save writes it since version 1.6, nor safetensors")
}

// index finds the description and the storages in the archive.
func (f *File) index(z *zip.Reader, size int64) (described *zip.File, err error) {
	f.data = map[string]*zip.File{}
	all := map[string]*zip.File{}
	for _, e := range z.File {
		if !filepath.IsLocal(strings.TrimSuffix(e.Name, "/")) || strings.Contains(e.Name, `\`) {
			return nil, fmt.Errorf("its archive has the entry %.80q, which names a place outside of it: no checkpoint has that", e.Name)
		}
		if all[e.Name] != nil {
			return nil, fmt.Errorf("its archive has two entries %.80q", e.Name)
		}
		all[e.Name] = e
		// No method of compression gives more than about 1032 bytes for one.
		if e.CompressedSize64 > uint64(size) || e.UncompressedSize64 > 1<<10+1032*e.CompressedSize64 {
			return nil, fmt.Errorf("its archive has the entry %.80q of %d bytes, more than a file of %d bytes can hold", e.Name, e.UncompressedSize64, size)
		}
		if dir, base := path.Split(e.Name); base == "data.pkl" && strings.Count(dir, "/") == 1 {
			described = e
		}
	}
	if described == nil {
		return nil, fmt.Errorf("it is a zip archive, but no checkpoint: it has no ROOT/data.pkl, only %s", some(all))
	}
	root := strings.TrimSuffix(described.Name, "data.pkl")
	if all[root+"constants.pkl"] != nil {
		return nil, errors.New("it is a TorchScript program, not a state dict; save the weights alone: torch.save(model.state_dict(), FILE)")
	}
	if order := all[root+"byteorder"]; order != nil {
		b, err := readAll(order, 64)
		if err != nil {
			return nil, err
		}
		if string(b) != "little" {
			return nil, fmt.Errorf("its numbers are stored as %.20q, expected little (endian)", b)
		}
	}
	for name, e := range all {
		if key, ok := strings.CutPrefix(name, root+"data/"); ok {
			f.data[key] = e
		}
	}
	return described, nil
}

func some(entries map[string]*zip.File) string {
	var names []string
	for n := range entries {
		names = append(names, fmt.Sprintf("%.60q", n))
	}
	if len(names) == 0 {
		return "nothing"
	}
	slices.Sort(names)
	if len(names) > 5 {
		names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
	}
	return strings.Join(names, ", ")
}

func readAll(e *zip.File, limit int64) ([]byte, error) {
	r, err := e.Open()
	if err != nil {
		return nil, damaged(e, err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, damaged(e, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", e.Name, limit)
	}
	return b, nil
}

func damaged(e *zip.File, err error) error {
	return fmt.Errorf("entry %.80q of the archive is cut short or damaged (%w)", e.Name, err)
}

// take keeps the tensors of the root, which must be a dict of them.
func (f *File) take(root any) error {
	d, ok := root.(*dict)
	if !ok {
		return fmt.Errorf("it holds %s, expected a dict of tensors (a state dict)", describe(root))
	}
	f.tensors = map[string]Tensor{}
	for i, k := range d.keys {
		name, ok := k.(string)
		if !ok {
			return fmt.Errorf("its dict has the key %s, expected names of tensors", describe(k))
		}
		t, ok := d.values[i].(Tensor)
		if !ok {
			return nested(d)
		}
		e := f.data[t.at.key]
		if e == nil {
			return fmt.Errorf("the numbers of tensor %.80q are missing in its archive: the file is damaged", name)
		}
		if want := uint64(t.at.n) * uint64(t.at.kind.size); e.UncompressedSize64 != want {
			return fmt.Errorf("the numbers of tensor %.80q have %d bytes, %d of type %s need %d: the file is damaged",
				name, e.UncompressedSize64, t.at.n, t.DType, want)
		}
		f.names = append(f.names, name)
		f.tensors[name] = t
	}
	return nil
}

// nested says what a dict holds that has more than tensors in it.
func nested(d *dict) error {
	var items []string
	within := ""
	for i, k := range d.keys {
		name, _ := k.(string)
		items = append(items, fmt.Sprintf("%.40s: %s", name, describe(d.values[i])))
		if sub, ok := d.values[i].(*dict); ok && within == "" && len(sub.values) > 0 {
			if _, ok := sub.values[0].(Tensor); ok {
				within = name
			}
		}
	}
	if len(items) > 8 {
		items = append(items[:8], fmt.Sprintf("and %d more", len(items)-8))
	}
	hint := "expected tensors alone (a state dict)"
	if within != "" {
		hint = fmt.Sprintf("expected the weights alone; with PyTorch: torch.save(torch.load(FILE, map_location='cpu')[%q], OTHER)", within)
	}
	return fmt.Errorf("its dict holds %s; %s", strings.Join(items, ", "), hint)
}

// describe names a value for messages. It never looks more than one level
// deep: a pickle can put a list into itself.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a truth value"
	case int:
		return fmt.Sprintf("the number %d", v)
	case float64:
		return fmt.Sprintf("the number %g", v)
	case string:
		return fmt.Sprintf("the text %.40q", v)
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *list:
		return fmt.Sprintf("a list of %d", len(v.items))
	case *dict:
		return fmt.Sprintf("a dict of %d", len(v.keys))
	case Tensor:
		return fmt.Sprintf("a tensor of %s %v", v.DType, v.Shape)
	}
	return "a part of a tensor"
}

// Names lists the tensors in the order of the dict.
func (f *File) Names() []string { return f.names }

// Tensor describes a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Close closes the file. Readers of its tensors end.
func (f *File) Close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}
