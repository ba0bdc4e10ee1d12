package predictions

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/safetensors"
)

// made is a small set of predictions with everything a file holds.
type made struct {
	meta                  Meta
	rows, seqLen          int
	preds, inputs, labels []uint8
	ids, tests            []int32
	q                     []float32
}

func make9(rows int) *made {
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	m := &made{rows: rows, seqLen: 9, meta: Meta{
		Dataset: "data/x", DatasetHash: "abc", Checkpoint: "runs/r/best.ckpt", CheckpointDigest: "def",
		Step: 1234567890123, Weights: "ema", HaltSteps: 16, Augmentations: -1,
	}}
	bytesOf := func() []uint8 {
		b := make([]uint8, rows*m.seqLen)
		for i := range b {
			b[i] = uint8(r.IntN(12))
		}
		return b
	}
	m.preds, m.inputs, m.labels = bytesOf(), bytesOf(), bytesOf()
	for i := range rows {
		m.ids = append(m.ids, int32(1+i/2))
		m.tests = append(m.tests, int32(i%2))
		m.q = append(m.q, r.Float32()-.5)
	}
	return m
}

func (m *made) source(row int) (inputs, labels []uint8, err error) {
	a, b := row*m.seqLen, (row+1)*m.seqLen
	return m.inputs[a:b], m.labels[a:b], nil
}

// write makes the file in uneven batches.
func (m *made) write(t *testing.T, path string, src Source) {
	t.Helper()
	w, err := Create(path, m.meta, m.rows, m.seqLen)
	require.NoError(t, err)
	defer w.Abort()
	for at, n := 0, 1; at < m.rows; n++ {
		to := min(at+n, m.rows)
		require.NoError(t, w.Append(m.preds[at*m.seqLen:to*m.seqLen], m.q[at:to], m.ids[at:to], m.tests[at:to]))
		at = to
	}
	require.Len(t, w.ids, m.rows)
	require.NoError(t, w.Close(src))
}

// all reads a token tensor whole, a few rows a time.
func all(open func() (*Tokens, error), seqLen int) ([]uint8, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var got []uint8
	for {
		buf := make([]uint8, 4*seqLen+3)
		n, err := s.Read(buf)
		if err != nil || n == 0 {
			return got, err
		}
		got = append(got, buf[:n*seqLen]...)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, rows := range []int{0, 1, 57} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sub", FileName)
		m := make9(rows)
		m.write(t, path, m.source)

		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, left, 1, "only the finished file stays")

		f, err := Open(path)
		require.NoError(t, err)
		require.Equal(t, m.meta, f.Meta)
		require.Equal(t, rows, f.Rows)
		require.Equal(t, 9, f.SeqLen)
		require.True(t, f.HasTokens())
		require.Equal(t, append([]int32{}, m.ids...), f.Identifiers)
		require.Equal(t, append([]int32{}, m.tests...), f.TestIndex)
		require.Equal(t, append([]float32{}, m.q...), f.QHalt)
		for _, c := range []struct {
			open func() (*Tokens, error)
			want []uint8
		}{{f.Preds, m.preds}, {f.Inputs, m.inputs}, {f.Labels, m.labels}} {
			got, err := all(c.open, 9)
			require.NoError(t, err)
			require.True(t, bytes.Equal(c.want, got))
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	m := make9(20)
	var got [2][]byte
	for i := range got {
		path := filepath.Join(t.TempDir(), FileName)
		m.write(t, path, m.source)
		var err error
		got[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	require.Equal(t, got[0], got[1])
}

func TestWithoutTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	m := make9(5)
	m.write(t, path, nil)
	f, err := Open(path)
	require.NoError(t, err)
	require.False(t, f.HasTokens())
	_, err = f.Inputs()
	require.ErrorContains(t, err, `no tensor "inputs"`)
	got, err := all(f.Preds, 9)
	require.NoError(t, err)
	require.Equal(t, m.preds, got)
}

// An unfinished file never appears under its name, and leaves nothing.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	m := make9(4)
	w, err := Create(path, m.meta, 4, 9)
	require.NoError(t, err)
	require.NoError(t, w.Append(m.preds[:9], m.q[:1], m.ids[:1], m.tests[:1]))
	require.NoFileExists(t, path)
	require.ErrorContains(t, w.Close(nil), "1 rows were predicted, 4 were announced")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	w, err = Create(path, m.meta, 1, 9)
	require.NoError(t, err)
	require.NoError(t, w.Append(m.preds[:9], m.q[:1], m.ids[:1], m.tests[:1]))
	require.ErrorContains(t, w.Close(func(int) (a, b []uint8, err error) { return nil, nil, errors.New("no such row") }), "no such row")
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Panics(t, func() { _ = w.Append(m.preds[:9], m.q[:1], m.ids[:1], m.tests[:1]) })
}

// A failed rewrite leaves the older file as it was.
func TestOlderFileSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	make9(4).write(t, path, nil)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	w, err := Create(path, Meta{}, 3, 9)
	require.NoError(t, err)
	require.Error(t, w.Close(nil))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// readAll opens a file and reads its preds to the end.
func readAll(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	_, err = all(f.Preds, f.SeqLen)
	return err
}

func TestBrokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	m := make9(300)
	m.write(t, path, m.source)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, readAll(path))

	check := func(name string, b []byte, want string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, b, 0o644))
		err := readAll(path)
		require.Error(t, err, name)
		var e *Error
		require.True(t, errors.As(err, &e), name)
		require.True(t, e.BadInput())
		require.ErrorContains(t, err, path, name)
		require.ErrorContains(t, err, want, name)
	}
	for n := 0; n < len(good); n += 1 + n/7 {
		check("cut", good[:n], "cut short")
	}
	check("last byte", good[:len(good)-1], "cut short")
	for at := 40; at < len(good); at += len(good) / 9 {
		b := bytes.Clone(good)
		b[at] ^= 0x55
		check("flipped", b, "")
	}
	last := bytes.Clone(good)
	last[len(last)-3] ^= 0x10 // of the checksum at the end
	check("checksum", last, `the file is damaged (CRC check failed); make it again with "hrm eval"`)
	check("more behind", append(bytes.Clone(good), "junk"...), "the file is damaged")
	check("doubled", append(bytes.Clone(good), good...), "behind the last tensor")
	check("text", []byte("{\"task\": [1, 2, 3]}, which is no predictions file"), "")
}

func TestForeignFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	ids := safetensors.Entry{Name: tIdentifiers, DType: "I32", Shape: []int{2}}
	q := safetensors.Entry{Name: tQHalt, DType: "F32", Shape: []int{2}}
	preds := safetensors.Entry{Name: tPreds, DType: "U8", Shape: []int{2, 4}}
	for _, c := range []struct {
		name    string
		meta    map[string]string
		entries []safetensors.Entry
		want    string
	}{
		{"weights", nil, []safetensors.Entry{{Name: "embed.weight", DType: "F32", Shape: []int{2, 2}}}, `no tensor "preds", only embed.weight`},
		{"logits", nil, []safetensors.Entry{ids, q, {Name: tPreds, DType: "F32", Shape: []int{2, 4, 12}}}, "F32 [2 4 12], expected U8"},
		{"rows", nil, []safetensors.Entry{{Name: tIdentifiers, DType: "I32", Shape: []int{3}}, q, preds}, "3 rows, preds has 2"},
		{"wide ids", nil, []safetensors.Entry{{Name: tIdentifiers, DType: "I64", Shape: []int{2}}, q, preds}, "I64 [2], expected I32"},
		{"no q", nil, []safetensors.Entry{ids, preds}, `no tensor "q_halt_logits"`},
		{"labels", nil, []safetensors.Entry{ids, q, preds, {Name: tLabels, DType: "U8", Shape: []int{1, 4}}}, `"labels" is U8 [1 4]`},
		{"newer", map[string]string{"format": "deeploop predictions 2"}, []safetensors.Entry{ids, q, preds}, "predictions 2"},
		{"step", map[string]string{"format": format, "step": "many"}, []safetensors.Entry{ids, q, preds}, `step is "many"`},
	} {
		var b bytes.Buffer
		w, err := safetensors.NewWriter(&b, c.meta, c.entries)
		require.NoError(t, err)
		for _, e := range c.entries {
			in := safetensors.Info{Shape: e.Shape}
			_, err := w.Write(make([]byte, in.Len()*map[string]int{"U8": 1, "I32": 4, "F32": 4, "I64": 8}[e.DType]))
			require.NoError(t, err)
		}
		require.NoError(t, w.Finish())
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		_, err = Open(path)
		require.ErrorContains(t, err, c.want, c.name)
	}
	_, err := Open(filepath.Join(t.TempDir(), "gone"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A header may claim any size: only what is really there costs memory.
func TestLyingHeader(t *testing.T) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	n := 1 << 40
	_, err = safetensors.NewWriter(z, nil, []safetensors.Entry{
		{Name: tIdentifiers, DType: "I32", Shape: []int{n}},
		{Name: tQHalt, DType: "F32", Shape: []int{n}},
		{Name: tPreds, DType: "U8", Shape: []int{n, 900}},
	})
	require.NoError(t, err)
	require.NoError(t, z.Close())
	path := filepath.Join(t.TempDir(), FileName)
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	_, err = Open(path)
	require.ErrorContains(t, err, "cut short")
}

// The reference's recorded file is read as it is, plain or compressed.
func TestGoldenPredictionsFile(t *testing.T) {
	for _, path := range goldentest.Files(t, "*_predictions*.safetensors") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			z, err := zstd.NewWriter(nil)
			require.NoError(t, err)
			packed := filepath.Join(t.TempDir(), FileName)
			require.NoError(t, os.WriteFile(packed, z.EncodeAll(raw, nil), 0o644))

			plain, err := safetensors.Open(path)
			require.NoError(t, err)
			defer plain.Close()
			for _, p := range []string{path, packed} {
				f, err := Open(p)
				require.NoError(t, err)
				ids, err := plain.Int32s(tIdentifiers)
				require.NoError(t, err)
				require.Equal(t, ids, f.Identifiers)
				require.Nil(t, f.TestIndex)
				for name, open := range map[string]func() (*Tokens, error){tPreds: f.Preds, tInputs: f.Inputs, tLabels: f.Labels} {
					want, err := plain.Uint8s(name)
					require.NoError(t, err)
					got, err := all(open, f.SeqLen)
					require.NoError(t, err)
					require.True(t, bytes.Equal(want, got), name)
				}
			}
		})
	}
}

// A file of ours is known as such by its header alone, nothing else is.
func TestKindKnowsOurFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.zst")
	m := make9(40)
	m.write(t, path, m.source)
	require.True(t, Kind.Is(path))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	damaged := filepath.Join(dir, "damaged")
	require.NoError(t, os.WriteFile(damaged, b[:len(b)-50], 0o644))
	require.True(t, Kind.Is(damaged))
	for name, text := range map[string]string{"text": "my notes, longer than a header", "short": "a", "head": string(b[:6])} {
		other := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(other, []byte(text), 0o644))
		require.False(t, Kind.Is(other), name)
	}
	require.False(t, Kind.Is(filepath.Join(dir, "none")))
	require.False(t, Kind.Is(dir))
}

// Two evaluations that write one file at once leave one of both, whole.
func TestTwoWritersOfOneFileDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.zst")
	var writers [2]*Writer
	m := make9(40)
	for i := range writers {
		w, err := Create(path, m.meta, m.rows, m.seqLen)
		require.NoError(t, err)
		defer w.Abort()
		writers[i] = w
	}
	for at := range m.rows {
		for i, w := range writers {
			row := bytes.Repeat([]uint8{uint8(i + 2)}, m.seqLen)
			require.NoError(t, w.Append(row, m.q[at:at+1], m.ids[at:at+1], m.tests[at:at+1]))
		}
	}
	require.NoError(t, writers[0].Close(func(row int) (inputs, labels []uint8, err error) {
		if row == 20 && !writers[1].done { // the other one finishes in the middle
			require.NoError(t, writers[1].Close(m.source))
		}
		return m.source(row)
	}))
	f, err := Open(path)
	require.NoError(t, err)
	got, err := all(f.Preds, m.seqLen)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]uint8{2}, m.rows*m.seqLen), got)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
