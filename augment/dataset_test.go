package augment

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codeberg.org/sbinet/npyio/npy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// Compressed arrays unpack, with any zstd decoder, to the plain files, and
// rows read one by one are the same.
func TestZstd(t *testing.T) {
	c := load(t, someTasks(6))
	plainDir, plain := build(t, c, small(40))
	s := small(40)
	s.Compress = Zstd
	packedDir, packed := build(t, c, s)
	require.Equal(t, plain.DatasetHash, packed.DatasetHash)
	require.Len(t, packed.Files, len(plain.Files))
	compressed := 0
	for name, info := range packed.Files {
		raw, err := os.ReadFile(filepath.Join(packedDir, name))
		require.NoError(t, err)
		if strings.HasSuffix(name, zstdSuffix) {
			compressed++
			d, err := zstd.NewReader(bytes.NewReader(raw))
			require.NoError(t, err)
			var b bytes.Buffer
			_, err = b.ReadFrom(d)
			require.NoError(t, err)
			raw = b.Bytes()
		}
		want, err := os.ReadFile(filepath.Join(plainDir, plainName(name)))
		require.NoError(t, err)
		require.Equal(t, want, raw, name)
		require.Equal(t, plain.Files[plainName(name)].SHA256, info.SHA256)
	}
	require.Equal(t, 10, compressed)

	a, err := OpenDataset(plainDir)
	require.NoError(t, err)
	defer a.Close()
	b, err := OpenDataset(packedDir)
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, a.Train.PuzzleIndices, b.Train.PuzzleIndices)
	require.Greater(t, a.Train.Examples(), 10*frameRows)
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			var scratch []byte
			for range 1000 {
				i := r.IntN(a.Train.Examples())
				want, err := a.Train.Labels.Row(i, nil)
				if err != nil {
					panic(err)
				}
				if scratch, err = b.Train.Labels.Row(i, scratch); err != nil || !bytes.Equal(want, scratch) {
					panic("row differs")
				}
			}
		})
	}
	wg.Wait()
	require.Panics(t, func() { _, _ = a.Train.Labels.Row(-1, nil) })
	require.Panics(t, func() { _, _ = b.Train.Labels.Row(b.Train.Examples(), nil) })
	problems, err := Verify(context.Background(), packedDir, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A flipped bit in a compressed array is noticed when it is read.
func TestZstdDamage(t *testing.T) {
	s := small(40)
	s.Compress = Zstd
	dir, m := build(t, load(t, someTasks(6)), s)
	path := filepath.Join(dir, "train/all__inputs.npy.zst")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	frames, err := readSeekTable(bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	raw[frames[3].at+int64(frames[3].size)/2] ^= 4
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	d, err := OpenDataset(dir)
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Train.Inputs.Row(2*frameRows+5, nil)
	require.ErrorContains(t, err, path)
	_, err = d.Train.Inputs.Row(0, nil)
	require.NoError(t, err)
	problems, err := Verify(context.Background(), dir, nil)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "all__inputs.npy.zst: sha256")
	for cut := range 40 {
		_, err := readSeekTable(bytes.NewReader(raw[:len(raw)-1-cut]), int64(len(raw)-1-cut))
		require.Error(t, err)
	}
	require.NotEmpty(t, m.Files)
}

// Every kind of damage to a dataset is named by Verify, and all that shows
// without reading the arrays by OpenDataset.
func TestVerifyAndOpenNoticeDamage(t *testing.T) {
	c := load(t, someTasks(2))
	write := func(path string, b []byte) { require.NoError(t, os.WriteFile(path, b, 0o644)) }
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return b
	}
	for name, harm := range map[string]struct {
		do         func(dir string)
		verify     string
		opens      bool
		notDataset bool
	}{
		"whole":   {do: func(string) {}, opens: true},
		"changed": {do: func(d string) { p := d + "/train/all__inputs.npy"; b := read(p); b[len(b)-1] ^= 1; write(p, b) }, verify: "train/all__inputs.npy: sha256", opens: true},
		"short":   {do: func(d string) { p := d + "/test/all__labels.npy"; b := read(p); write(p, b[:len(b)-1]) }, verify: "test/all__labels.npy: has"},
		"longer":  {do: func(d string) { p := d + "/identifiers.json"; write(p, append(read(p), ' ')) }, verify: "identifiers.json: has"},
		"missing": {do: func(d string) { require.NoError(t, os.Remove(d+"/train/dataset.json")) }, verify: "train/dataset.json: missing"},
		"extra":   {do: func(d string) { write(d+"/test/notes.txt", nil) }, verify: "test/notes.txt: not listed", opens: true},
		"hash": {do: func(d string) {
			p := d + "/manifest.json"
			write(p, bytes.Replace(read(p), []byte(`"dataset_hash": "`), []byte(`"dataset_hash": "0`), 1))
		}, verify: "dataset_hash is 0", opens: true},
		"no manifest":  {do: func(d string) { require.NoError(t, os.Remove(d+"/manifest.json")) }, notDataset: true},
		"bad manifest": {do: func(d string) { p := d + "/manifest.json"; write(p, read(p)[:100]) }, notDataset: true},
		"other format": {do: func(d string) { write(d+"/manifest.json", []byte("{}")) }, notDataset: true},
		"unlisted": {do: func(d string) {
			p := d + "/manifest.json"
			var m map[string]any
			require.NoError(t, json.Unmarshal(read(p), &m))
			delete(m["files"].(map[string]any), TestPuzzlesName)
			b, err := json.Marshal(m)
			require.NoError(t, err)
			write(p, b)
		}, verify: "test_puzzles.json: not listed", opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := build(t, c, small(2))
			harm.do(dir)
			problems, err := Verify(context.Background(), dir, func(done, total int64) { require.LessOrEqual(t, done, total) })
			d, openErr := OpenDataset(dir)
			if openErr == nil {
				require.NoError(t, d.Close())
			}
			if harm.notDataset {
				require.ErrorIs(t, err, ErrNotDataset)
				require.ErrorIs(t, openErr, ErrNotDataset)
				return
			}
			require.NoError(t, err)
			require.Equal(t, harm.opens, openErr == nil, "%v", openErr)
			if harm.verify == "" {
				require.Empty(t, problems)
				return
			}
			require.Contains(t, strings.Join(problems, "\n"), harm.verify)
		})
	}
}

// Arrays that do not fit together are refused, with or without a manifest.
func TestOpenArraysChecks(t *testing.T) {
	c := load(t, someTasks(2))
	for name, harm := range map[string]struct {
		file    string
		content func(old []byte) []byte
		want    string
	}{
		"indices fall":   {"train/all__puzzle_indices.npy", func([]byte) []byte { return npyInt32([]int32{0, 5, 3}) }, "puzzle_indices"},
		"identifier":     {"test/all__puzzle_identifiers.npy", func(b []byte) []byte { b[len(b)-1] = 9; return b }, "identifier"},
		"not npy":        {"train/all__inputs.npy", func([]byte) []byte { return []byte("hello, world, hello") }, "NUMPY"},
		"wrong type":     {"train/all__labels.npy", func([]byte) []byte { return npyInt32([]int32{1}) }, "<i4"},
		"broken head":    {"train/all__labels.npy", func([]byte) []byte { return []byte("\x93NUMPY\x01\x00\x05\x00{'a'}") }, "header"},
		"header too big": {"train/all__labels.npy", func([]byte) []byte { return []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{'a'}") }, "header"},
		"vocabulary":     {"test/dataset.json", func(b []byte) []byte { return bytes.Replace(b, []byte(`"seq_len": 64`), []byte(`"seq_len": 65`), 1) }, "65"},
		"json":           {"test/dataset.json", func([]byte) []byte { return []byte("{") }, "dataset.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := build(t, c, small(1))
			path := filepath.Join(dir, harm.file)
			old, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, harm.content(old), 0o644))
			_, err = OpenArrays(dir)
			require.ErrorContains(t, err, harm.want)
		})
	}
}

// npyio, an independent reader, agrees about our headers.
func TestNpyHeader(t *testing.T) {
	for _, shape := range [][]int{{0}, {1}, {7, 900}, {123456789, 900}, {0, 100}} {
		h := npyHeader("|u1", shape...)
		require.Zero(t, len(h)%64)
		r, err := npy.NewReader(bytes.NewReader(h))
		require.NoError(t, err)
		require.Equal(t, shape, r.Header.Descr.Shape)
		require.EqualValues(t, 1, r.Header.Major)
		info, err := readNpyInfo(bytes.NewReader(h))
		require.NoError(t, err)
		require.Equal(t, npyInfo{"|u1", shape, int64(len(h))}, info)
	}
}

func TestPythonJSON(t *testing.T) {
	for in, want := range map[string]string{
		`a"b\c/`: `"a\"b\\c/"`, "\n\r\t\b\f\x00\x1f\x7f~": `"\n\r\t\b\f\u0000\u001f\u007f~"`, "ü€😀": `"\u00fc\u20ac\ud83d\ude00"`,
	} {
		got := appendPyString(nil, in)
		require.Equal(t, want, string(got))
		var back string
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, in, back)
	}
	for in, want := range map[float64]string{4.2: "4.2", 1: "1.0", 0: "0.0", 4.145856117535442: "4.145856117535442", 1.0 / 3: "0.3333333333333333"} {
		require.Equal(t, want, pyFloat(in))
	}
}
