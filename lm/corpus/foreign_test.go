package corpus

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/lm/tokens"
)

func write(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

// raw are tokens of 2 or 4 bytes, with llm.c's header or without.
func raw(header bool, width int64, ids ...uint32) []byte {
	var b []byte
	if header {
		b = appendHeader(b, int64(len(ids)), width)
	}
	for _, id := range ids {
		if width == 2 {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		} else {
			b = binary.LittleEndian.AppendUint32(b, id)
		}
	}
	return b
}

func all(t testing.TB, s *Split) []int32 {
	t.Helper()
	ids := make([]int32, s.Len())
	require.NoError(t, s.Read(ids, 0))
	return ids
}

func patched(b []byte, at int, v uint32) []byte {
	binary.LittleEndian.PutUint32(b[at:], v)
	return b
}

// T28: token files of others are recognised, and what is wrong with one is
// said with its place.
func TestT28ForeignFiles(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		format  string
		ids     []int32
	}{
		"llm.c uint16":       {raw(true, 2, 50256, 15496, 995), FormatLLMC16, []int32{50256, 15496, 995}},
		"1026 bytes":         {raw(true, 2, 7), FormatLLMC16, []int32{7}},
		"llm.c uint32":       {raw(true, 4, 1, 50000), FormatLLMC32, []int32{1, 50000}},
		"nanoGPT":            {raw(false, 2, 1, 2, 50256), FormatNanoGPT, []int32{1, 2, 50256}},
		"nanoGPT 1026 bytes": {raw(false, 2, make([]uint32, 513)...), FormatNanoGPT, make([]int32, 513)},
	} {
		path := write(t, t.TempDir(), "x.bin", c.content)
		d, err := Open(path)
		require.NoError(t, err, name)
		require.Equal(t, c.format, d.Format, name)
		require.Equal(t, c.ids, all(t, d.Train), name)
		require.Zero(t, d.Val.Len())
		require.Equal(t, tokens.GPT2Name, d.Tokenizer.Name())
		require.NoError(t, d.Close())
	}
	for want, content := range map[string][]byte{
		"is empty":                         {},
		"it has 1027 bytes, an odd number": append(raw(false, 2, make([]uint32, 513)...), 1),
		"says 1 tokens of 2 bytes, so 1026 bytes with it, and the file has 1027": append(raw(true, 2, 7), 1),
		"says 2 tokens of 2 bytes, so 1028 bytes":                                patched(raw(true, 2, 7), 8, 2),
		"says -1 tokens": patched(raw(true, 2, 7), 8, 0xffffffff),
		"says 1 tokens of 4 bytes, so 1028 bytes with it, and the file has 1026": patched(patched(raw(true, 2, 7), 0, magic32), 4, version32),
		"version at byte 4 is 7, expected 1":                                     patched(raw(true, 2, 7), 4, 7),
		"version at byte 4 is 1, expected 7":                                     patched(raw(true, 4, 7), 4, 1),
		"begins as a file of llm.c (magic 20240520), expected a header of 1024":  raw(true, 2)[:100],
		"token 2, at byte 4, is 50257, expected ids below 50257":                 raw(false, 2, 1, 2, 50257),
		"token 1, at byte 1028, is 4294967295, expected ids below 50257":         raw(true, 4, 1, 0xffffffff),
		"token 1, at byte 1026, is 65535":                                        raw(true, 2, 1, 0xffff),
		"token 0, at byte 0, is 55434":                                           patched(raw(true, 2, 1), 0, 20240522), // llm.c's multiple-choice file
	} {
		path := write(t, t.TempDir(), "x.bin", content)
		_, err := Open(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		require.ErrorAs(t, err, new(*InputError))
	}
}

// An id beyond the vocabulary far inside is found when it is read, and by
// Verify.
func TestForeignIDFarInside(t *testing.T) {
	ids := make([]uint32, 200_000)
	ids[150_000] = 60_000
	d, err := Open(write(t, t.TempDir(), "val.bin", raw(true, 2, ids...)))
	require.NoError(t, err)
	defer d.Close()
	require.Zero(t, d.Train.Len())
	require.NoError(t, d.Val.Read(make([]int32, 10), 149_990))
	require.ErrorContains(t, d.Val.Read(make([]int32, 10), 149_991), "token 150000, at byte 301024, is 60000, expected ids below 50257")
}

func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "train.bin", raw(false, 2, 1, 2, 3))
	write(t, dir, "val.bin", raw(false, 2, 4))
	write(t, dir, "meta.pkl", []byte("x"))
	d, err := Open(dir)
	require.NoError(t, err)
	require.Equal(t, FormatNanoGPT, d.Format)
	require.Equal(t, []int32{1, 2, 3}, all(t, d.Train))
	require.Equal(t, []int32{4}, all(t, d.Val))
	require.Len(t, d.Warnings, 1)
	require.Contains(t, d.Warnings[0], "meta.pkl is not read")
	require.NoError(t, d.Close())
	hash := d.Hash

	write(t, dir, "val.bin", raw(false, 2, 5))
	d, err = Open(dir)
	require.NoError(t, err)
	require.NotEqual(t, hash, d.Hash)
	require.NoError(t, d.Close())

	write(t, dir, "val.bin", raw(true, 2, 5))
	_, err = Open(dir)
	require.ErrorContains(t, err, "expected one format")

	dir = t.TempDir() // as llm.c names FineWeb, in order over shards
	write(t, dir, "fineweb_train_000002.bin", raw(true, 2, 4, 5))
	write(t, dir, "fineweb_train_000001.bin", raw(true, 2, 1, 2, 3))
	write(t, dir, "fineweb_val_000000.bin", raw(true, 2, 6))
	write(t, dir, "other.bin", []byte("?"))
	d, err = Open(dir)
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, []int32{1, 2, 3, 4, 5}, all(t, d.Train))
	require.Contains(t, d.Warnings[0], "other.bin")
	part := make([]int32, 3)
	require.NoError(t, d.Train.Read(part, 1))
	require.Equal(t, []int32{2, 3, 4}, part)
	require.NoError(t, d.Train.Read(nil, 5))
	require.ErrorContains(t, d.Train.Read(part, 3), "train has 5, asked for 3 from number 3 on")
	require.Error(t, d.Train.Read(part, -1))

	for want, dir := range map[string]string{
		"no such file": filepath.Join(t.TempDir(), "gone"),
		"no manifest.json in it, so it is not a dataset of lm prepare": t.TempDir(),
		"none of its .bin files (other.bin) has train or val":          filepath.Dir(write(t, t.TempDir(), "other.bin", []byte("ab"))),
		"make a dataset of it with lm prepare --input":                 write(t, t.TempDir(), "story.txt", []byte("even")),
		"not a dataset: manifest.json":                                 filepath.Dir(write(t, t.TempDir(), ManifestName, []byte("{"))),
		`the format in manifest.json is "deeploop ARC`:                 filepath.Dir(write(t, t.TempDir(), ManifestName, []byte(`{"format":"deeploop ARC dataset"}`))),
		"version is 9": filepath.Dir(write(t, t.TempDir(), ManifestName, []byte(`{"format":"deeploop text dataset","version":9}`))),
	} {
		_, err := Open(dir)
		require.ErrorContains(t, err, want)
	}
}
