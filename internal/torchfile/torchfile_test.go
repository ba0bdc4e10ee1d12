package torchfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/kernel"
)

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func raw(t *testing.T, f *File, name string) []byte {
	t.Helper()
	r, err := f.Reader(name)
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

// numbers decodes a tensor of any type.
func numbers(t *testing.T, f *File, name string) []float64 {
	t.Helper()
	info, ok := f.Tensor(name)
	require.True(t, ok, name)
	b := raw(t, f, name)
	size := info.at.kind.size
	require.Len(t, b, info.Len()*size)
	out := make([]float64, info.Len())
	for i := range out {
		var x [8]byte
		copy(x[:], b[i*size:(i+1)*size])
		u := binary.LittleEndian.Uint64(x[:])
		switch info.DType {
		case "F64":
			out[i] = math.Float64frombits(u)
		case "F32":
			out[i] = float64(math.Float32frombits(uint32(u)))
		case "BF16":
			out[i] = float64(kernel.BF16(uint16(u)).Float32())
		case "F16": // of the values here, exactly
			if m, e := int(u&0x3ff), int(u>>10&31); e > 0 {
				out[i] = math.Ldexp(float64(1024+m), e-25)
			}
		case "I64":
			out[i] = float64(int64(u))
		case "I32":
			out[i] = float64(int32(u))
		case "I16":
			out[i] = float64(int16(u))
		case "I8":
			out[i] = float64(int8(u))
		default:
			out[i] = float64(uint8(u))
		}
	}
	return out
}

// refused requires a bad-input error that names the file and has the parts.
func refused(t *testing.T, err error, path string, parts ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err), err)
	for _, p := range append(parts, path) {
		require.ErrorContains(t, err, p)
	}
}

func TestEveryTypeOfNumbers(t *testing.T) {
	f := open(t, "testdata/kinds.pt")
	require.Equal(t, []string{"f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"}, f.Names())
	for _, name := range f.Names() {
		info, _ := f.Tensor(name)
		require.Equal(t, strings.ToUpper(name), info.DType)
		got := numbers(t, f, name)
		for i := range 24 {
			want := float64(i) / 8
			switch name[0] {
			case 'i', 'u':
				want = math.Trunc(want)
			}
			if name == "bool" {
				want = map[bool]float64{true: 1}[i%3 == 0]
			}
			require.Equal(t, want, got[i], "%s[%d]", name, i)
		}
	}
	f32, _ := f.Tensor("f32")
	require.Equal(t, []int{2, 3, 4}, f32.Shape)
}

func TestViewsOfOneStorage(t *testing.T) {
	f := open(t, "testdata/views.pt")
	for name, want := range map[string][]float64{
		"whole":     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		"tail":      {5, 6, 7, 8, 9, 10, 11},
		"square":    {0, 1, 2, 3, 4, 5, 6, 7, 8},
		"turned":    {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11},
		"every":     {1, 4, 7, 10},
		"scalar":    {2.5},
		"empty":     {},
		"parameter": {1, 1, 1, 1},
	} {
		require.Equal(t, want, numbers(t, f, name), name)
	}
	turned, _ := f.Tensor("turned")
	require.Equal(t, []int{4, 3}, turned.Shape)
	_, err := f.Reader("none")
	refused(t, err, f.Path, `no tensor "none"`)
}

func TestStateDictOfAModule(t *testing.T) {
	f := open(t, "testdata/state.pt")
	require.Equal(t, []string{"lin.weight", "lin.bias"}, f.Names())
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, numbers(t, f, "lin.weight"))
	require.Equal(t, []float64{-1, 1}, numbers(t, f, "lin.bias"))
}

// What is no state dict is told by what it is.
func TestOtherFilesAreNamed(t *testing.T) {
	for file, parts := range map[string][]string{
		"nested.pt":    {"model: a dict of 2, step: the number 7", `["model"]`, "torch.save("},
		"module.pt":    {`"__main__.Net"`, "torch.save(model.state_dict(), FILE)"},
		"tensor.pt":    {"it holds a tensor of F32 [2]", "state dict"},
		"old.pt":       {"before version 1.6", "torch.save(torch.load("},
		"protocol4.pt": {"protocol 4"},
		"script.pt":    {"TorchScript"},
	} {
		path := filepath.Join("testdata", file)
		_, err := Open(path)
		refused(t, err, path, parts...)
	}
	dir := t.TempDir()
	for text, part := range map[string]string{
		"": "it is empty", "version https://git-lfs.github.com/spec/v1\n": "git lfs pull", "<!DOCTYPE html>": "web page",
		"\x80\x04N.": "bare pickle", "{}": "neither", "\x1f\x8bxx": "gzip", "\x28\xb5\x2f\xfdxx": "zstd", zipMagic + "nothing": "cut short or damaged",
	} {
		path := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := Open(path)
		refused(t, err, path, part)
	}
	_, err := Open(filepath.Join(dir, "none"))
	refused(t, err, filepath.Join(dir, "none"), "no such file")
	_, err = Open(dir)
	refused(t, err, dir, "no regular file")
}

// archive writes a zip archive of the entries.
func archive(t *testing.T, method uint16, entries ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.pt")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: entries[i], Method: method})
		require.NoError(t, err)
		_, err = io.WriteString(w, entries[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

// one is the pickle of {"w": tensor} with a view of a storage of n numbers.
func one(n, offset int, shape, stride string) string {
	num := func(v int) string { return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(v))) }
	return "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" +
		num(n) + "tQ" + num(offset) + "(" + shape + "t(" + stride + "t\x89NtRs."
}

const eight = "\x00\x00\x80\x3f\x00\x00\x00\x40" // 1, 2

func TestCompressedArchives(t *testing.T) {
	f := open(t, archive(t, zip.Deflate, "x/data.pkl", one(2, 0, "K\x02", "K\x01"), "x/data/0", eight, "x/byteorder", "little"))
	require.Equal(t, []float64{1, 2}, numbers(t, f, "w"))
}

func TestArchivesThatLie(t *testing.T) {
	two := one(2, 0, "K\x02", "K\x01")
	for name, c := range map[string]struct {
		entries []string
		parts   []string
	}{
		"outside":     {[]string{"x/data.pkl", two, "../evil", "x"}, []string{`"../evil"`, "outside"}},
		"absolute":    {[]string{"x/data.pkl", two, "/etc/evil", "x"}, []string{`"/etc/evil"`, "outside"}},
		"windows":     {[]string{"x/data.pkl", two, `x\..\evil`, "x"}, []string{"outside"}},
		"twice":       {[]string{"x/data.pkl", two, "x/data/0", eight, "x/data/0", eight}, []string{"two entries"}},
		"no numbers":  {[]string{"x/data.pkl", two}, []string{`tensor "w"`, "missing"}},
		"few numbers": {[]string{"x/data.pkl", two, "x/data/0", "1234"}, []string{"4 bytes", "need 8"}},
		"documents":   {[]string{"word/document.xml", "<w>", "a", "b"}, []string{"no checkpoint", `"word/document.xml"`}},
		"big endian":  {[]string{"x/data.pkl", two, "x/data/0", eight, "x/byteorder", "big"}, []string{`stored as "big", expected little`}},
		"cut":         {[]string{"x/data.pkl", two[:20]}, []string{"cut short"}},
		"os":          {[]string{"x/data.pkl", "\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR."}, []string{`"os.system"`, "only tensors"}},
		"eval":        {[]string{"x/data.pkl", "\x80\x02c__builtin__\neval\n."}, []string{`"__builtin__.eval"`}},
		"torch":       {[]string{"x/data.pkl", "\x80\x02ctorch\nload\n."}, []string{`"torch.load"`}},
		"instance":    {[]string{"x/data.pkl", "\x80\x02(ios\nsystem\n."}, []string{"operation 0x69"}},
		"v3":          {[]string{"x/data.pkl", "\x80\x02ctorch._utils\n_rebuild_tensor_v3\n."}, []string{"_rebuild_tensor_v3"}},
		"no root":     {[]string{"data.pkl", two, "data/0", eight}, []string{"no ROOT/data.pkl"}},
		"key":         {[]string{"x/data.pkl", "\x80\x02}K\x01K\x02s."}, []string{"key the number 1"}},
		"call":        {[]string{"x/data.pkl", "\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R."}, []string{"other arguments"}},
	} {
		path := archive(t, zip.Store, c.entries...)
		_, err := Open(path)
		refused(t, err, path, c.parts...)
		require.NotContains(t, err.Error(), "\x00", name)
	}
	for name, p := range map[string]string{
		"over the end":  one(2, 1, "K\x02", "K\x01"),
		"strides":       one(2, 0, "K\x02", "K\x02"),
		"expanded":      one(2, 0, "J\xff\xff\xff\x7f", "K\x00"),
		"negative":      one(2, 0, "J\xff\xff\xff\xff", "K\x01"),
		"overflow":      one(2, 0, "J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f", "K\x01K\x01K\x01"),
		"offset":        one(2, math.MaxInt64, "K\x01", "K\x01"),
		"storage":       one(math.MaxInt64, 0, "K\x01", "K\x01"),
		"back stride":   one(2, 1, "K\x02", "J\xff\xff\xff\xff"),
		"dimensions":    one(2, 0, strings.Repeat("K\x01", 40), strings.Repeat("K\x01", 40)),
		"other strides": one(2, 0, "K\x02", ""),
	} {
		path := archive(t, zip.Store, "x/data.pkl", p, "x/data/0", eight)
		_, err := Open(path)
		refused(t, err, path)
		require.NotEmpty(t, err.Error(), name)
	}
	// A storage that claims what the archive has not.
	path := archive(t, zip.Deflate, "x/data.pkl", one(1<<40, 0, "K\x01", "K\x01"), "x/data/0", eight)
	_, err := Open(path)
	refused(t, err, path, "need 4398046511104")
}

// An archive whose directory claims sizes costs no memory.
func TestClaimedSizesCostNothing(t *testing.T) {
	path := archive(t, zip.Store, "x/data.pkl", one(1<<38, 0, "\x8a\x08\x00\x00\x00\x00\x40\x00\x00\x00", "K\x01"), "x/data/0", eight)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	// In the directory, the sizes of x/data/0 are 8; make the second 2^31.
	at := bytes.LastIndex(b, []byte("x/data/0")) - 46
	binary.LittleEndian.PutUint32(b[at+24:], 1<<31)
	require.NoError(t, os.WriteFile(path, b, 0o644))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Open(path)
	runtime.ReadMemStats(&after)
	refused(t, err, path, "more than a file of")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))

	bomb := archive(t, zip.Deflate, "x/data.pkl", strings.Repeat("N", maxPickle+1))
	_, err = Open(bomb)
	refused(t, err, bomb, fmt.Sprint("more than ", maxPickle))
	deep := archive(t, zip.Deflate, "x/data.pkl", "\x80\x02"+strings.Repeat("(", maxStack+1))
	_, err = Open(deep)
	refused(t, err, deep, "nests")
	// A value inside itself is no trouble for messages.
	path = archive(t, zip.Store, "x/data.pkl", "\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.")
	_, err = Open(path)
	refused(t, err, path, "a: a dict of 1")
}

func TestDamageIsNoticed(t *testing.T) {
	good, err := os.ReadFile("testdata/state.pt")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "state.pt")
	at := bytes.Index(good, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}) // 1, 2 of the weight
	require.Positive(t, at)
	bad := bytes.Clone(good)
	bad[at] ^= 1
	require.NoError(t, os.WriteFile(path, bad, 0o644))
	r, err := open(t, path).Reader("lin.weight")
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorContains(t, err, "damaged")
	f := open(t, path)
	info, _ := f.Tensor("lin.weight")
	r, err = f.Reader("lin.weight")
	require.NoError(t, err)
	_, err = io.ReadFull(r, make([]byte, 4*info.Len())) // as many bytes as there are, and no more is asked for
	require.ErrorContains(t, err, "damaged")
	for _, n := range []int{1, 4, 100, len(good) / 2, len(good) - 1} {
		require.NoError(t, os.WriteFile(path, good[:n], 0o644))
		_, err := Open(path)
		refused(t, err, path)
	}
}

func TestWriteReadsBack(t *testing.T) {
	entries := []Entry{
		{"_orig_mod.a", "F32", []int{2, 3}}, {"b", "BF16", []int{4}}, {"c", "I64", nil}, {"d", "U8", []int{0, 3}},
	}
	data := map[string][]byte{
		"_orig_mod.a": bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 6), "b": {0x80, 0x3f, 0, 0x40, 0x40, 0x40, 0x80, 0x40}, "c": {7, 0, 0, 0, 0, 0, 0, 0}, "d": {},
	}
	write := func() []byte {
		var b bytes.Buffer
		require.NoError(t, Write(&b, "a mark", entries, func(i int, w io.Writer) error {
			_, err := w.Write(data[entries[i].Name])
			return err
		}))
		return b.Bytes()
	}
	b := write()
	require.Equal(t, b, write(), "the same weights give the same bytes")
	path := filepath.Join(t.TempDir(), "step_1")
	require.NoError(t, os.WriteFile(path, b, 0o644))
	require.Equal(t, "a mark", Comment(path))
	require.Empty(t, Comment("testdata/state.pt"))
	f := open(t, path)
	for _, e := range entries {
		info, ok := f.Tensor(e.Name)
		require.True(t, ok)
		require.Equal(t, e.DType, info.DType)
		require.Equal(t, len(e.Shape), len(info.Shape))
		require.Equal(t, data[e.Name], raw(t, f, e.Name))
		at, err := f.data[info.at.key].DataOffset()
		require.NoError(t, err)
		require.Zero(t, at%alignment, e.Name)
	}
	require.Error(t, Write(io.Discard, "", []Entry{{"x", "F8", nil}}, nil))
	require.Error(t, Write(io.Discard, "", []Entry{{"x", "F32", nil}, {"x", "F32", nil}}, nil))
	require.ErrorContains(t, Write(io.Discard, "", []Entry{{"x", "F32", []int{2}}}, func(int, io.Writer) error { return errors.ErrUnsupported }), "unsupported")
	require.ErrorContains(t, Write(io.Discard, "", []Entry{{"x", "F32", []int{2}}}, func(int, io.Writer) error { return nil }), "needs 8")
}

// Whatever a file holds, it is read or refused: no panic, no endless loop, and
// tensors that were accepted can be read.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{"state.pt", "views.pt", "nested.pt", "script.pt"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(path, b, 0o644))
		readWhatIsAccepted(t, path)
	})
}

// The same for the description alone, which checksums hide from FuzzOpen.
func FuzzPickle(f *testing.F) {
	f.Add([]byte(one(2, 0, "K\x02", "K\x01")))
	f.Add([]byte(one(2, 1, "K\x01K\x01", "K\x01K\x00")))
	f.Add([]byte("\x80\x02(X\x01\x00\x00\x00a]q\x00(K\x01G\x00\x00\x00\x00\x00\x00\x00\x00ee\x85b."))
	for _, name := range []string{"state.pt", "views.pt", "module.pt"} {
		z, err := zip.OpenReader(filepath.Join("testdata", name))
		require.NoError(f, err)
		for _, e := range z.File {
			if strings.HasSuffix(e.Name, "/data.pkl") {
				b, err := readAll(e, maxPickle)
				require.NoError(f, err)
				f.Add(b)
			}
		}
		z.Close()
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := unpickle(b); err != nil {
			require.NotEmpty(t, err.Error())
		}
		readWhatIsAccepted(t, archive(t, zip.Store, "x/data.pkl", string(b), "x/data/0", eight))
	})
}

func readWhatIsAccepted(t *testing.T, path string) {
	f, err := Open(path)
	if err != nil {
		var e *Error
		require.ErrorAs(t, err, &e)
		return
	}
	defer f.Close()
	for _, name := range f.Names() {
		r, err := f.Reader(name)
		if err != nil {
			continue
		}
		info, _ := f.Tensor(name)
		if b, err := io.ReadAll(r); err == nil {
			require.Len(t, b, info.Len()*info.at.kind.size)
		}
		r.Close()
	}
}
