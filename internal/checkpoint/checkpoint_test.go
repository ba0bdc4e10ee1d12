package checkpoint

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/kernel"
	"deeploop/internal/rng"
)

// toy is state of every kind that a Set takes.
type toy struct {
	w, ema, wide kernel.Buf
	half         []kernel.BF16
	table        []float32
	steps        []int32
	big          []int64
	bits         []uint64
	raw          []uint8
	halted       []bool
	none         []float64
	adam         int
	loader       struct{ Pass, Start int }
	stream       *rng.Stream
}

func newToy(seed uint64) *toy {
	s := rng.NewStream(seed, "toy")
	y := &toy{
		w: kernel.Alloc(kernel.Float32, 6), ema: kernel.Alloc(kernel.Float32, 6), wide: kernel.Alloc(kernel.Float64, 2),
		half: []kernel.BF16{1, 2, 3}, table: make([]float32, 8), steps: []int32{-1, int32(seed)}, big: []int64{math.MinInt64},
		bits: []uint64{math.MaxUint64}, raw: []uint8{0, 255}, halted: []bool{true, false, seed > 1},
		adam: int(seed), stream: rng.NewStream(seed, "explore"),
	}
	for i := range 6 {
		y.w.SetAt(i, s.NormFloat64())
		y.ema.SetAt(i, s.NormFloat64())
	}
	y.wide.SetAt(0, math.Inf(1))
	y.loader.Pass, y.loader.Start = 3, int(seed)
	y.stream.Uint64()
	return y
}

func (y *toy) set() *Set {
	s := &Set{}
	s.Tensor(Weights, "inner.w", []int{2, 3}, y.w)
	s.Tensor(EMA, "inner.w", []int{2, 3}, y.ema)
	s.Tensor(Weights, "inner.wide", []int{2}, y.wide)
	s.Tensor(Carry, "half", []int{3, 1}, kernel.B16(y.half))
	s.Tensor(TaskEmbeddings, "table", []int{4, 2}, y.table)
	s.Tensor(Carry, "steps", []int{2}, y.steps)
	s.Tensor(Carry, "big", nil, y.big)
	s.Tensor(Carry, "bits", []int{1}, y.bits)
	s.Tensor(Carry, "raw", []int{2}, y.raw)
	s.Tensor(Carry, "halted", []int{3}, y.halted)
	s.Tensor(Carry, "none", []int{0, 5}, y.none)
	s.Value(Optimizer, "steps", &y.adam)
	s.Value(Carry, "loader", &y.loader)
	s.Value(Streams, "explore", y.stream)
	return s
}

func meta() Meta {
	id := IdentityOf([]string{"<blank>", "a", "b"})
	return Meta{Kind: "toy", Program: "v1", Config: json.RawMessage(`{"hidden_size":512}`), Identity: &id}
}

func saved(t *testing.T, seed uint64, step int) (*Store, string) {
	s := &Store{Dir: filepath.Join(t.TempDir(), Folder)}
	ref, err := s.Save(step, meta(), newToy(seed).set())
	require.NoError(t, err)
	return s, s.Path(ref)
}

func open(t *testing.T, dir string) *Reader {
	r, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func digest(t *testing.T, dir string) string {
	d, err := open(t, dir).Digest()
	require.NoError(t, err)
	return d
}

// badInput requires an error with exit code 2.
func badInput(t *testing.T, err error, parts ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err), err)
	for _, p := range parts {
		require.ErrorContains(t, err, p)
	}
}

func TestRoundTrip(t *testing.T) {
	_, dir := saved(t, 1, 100)
	r := open(t, dir)
	require.Equal(t, 100, r.Step())
	require.Equal(t, "toy", r.Meta().Kind)
	require.JSONEq(t, `{"hidden_size":512}`, string(r.Meta().Config))
	require.Equal(t, 3, r.Meta().Identity.Count)
	want, got := newToy(1), newToy(2)
	require.NoError(t, r.Load(got.set()))
	require.Equal(t, want.w.Bytes(), got.w.Bytes())
	require.Equal(t, want.ema.Bytes(), got.ema.Bytes())
	require.Equal(t, want.wide.Bytes(), got.wide.Bytes())
	require.Equal(t, want.halted, got.halted)
	require.Equal(t, want.steps, got.steps)
	require.Equal(t, want.bits, got.bits)
	require.Equal(t, want.adam, got.adam)
	require.Equal(t, want.loader, got.loader)
	require.Equal(t, want.stream.Uint64(), got.stream.Uint64())
	require.Len(t, r.Tensors(), 11)

	badInput(t, r.Value(Carry, "gone", &struct{}{}), "carry/gone")
	var n string
	badInput(t, r.Value(Optimizer, "steps", &n), "optimizer/steps")
}

func TestDigestCoversStateAndNothingElse(t *testing.T) {
	_, a := saved(t, 1, 100)
	base := digest(t, a)
	require.Len(t, base, 64)

	other := &Store{Dir: t.TempDir()}
	m := meta()
	m.Program, m.Config, m.Identity = "v2", json.RawMessage(`{"run":"elsewhere"}`), nil
	y := newToy(1)
	s := y.set()
	for i, j := 0, len(s.tensors)-1; i < j; i, j = i+1, j-1 { // listed in another order
		s.tensors[i], s.tensors[j] = s.tensors[j], s.tensors[i]
	}
	ref, err := other.Save(100, m, s)
	require.NoError(t, err)
	require.Equal(t, base, digest(t, other.Path(ref)))

	changes := map[string]func(y *toy){
		"weight": func(y *toy) { y.w.SetAt(5, 9) },
		"ema":    func(y *toy) { y.ema.SetAt(0, 9) },
		"carry":  func(y *toy) { y.halted[0] = false },
		"adam":   func(y *toy) { y.adam++ },
		"loader": func(y *toy) { y.loader.Start++ },
		"stream": func(y *toy) { y.stream.Uint64() },
		"table":  func(y *toy) { y.table[7] = float32(math.Copysign(0, -1)) },
	}
	for name, change := range changes {
		y := newToy(1)
		change(y)
		ref, err := other.Save(100, meta(), y.set())
		require.NoError(t, err)
		require.NotEqual(t, base, digest(t, other.Path(ref)), name)
	}
	ref, err = other.Save(101, meta(), newToy(1).set())
	require.NoError(t, err)
	require.NotEqual(t, base, digest(t, other.Path(ref)), "step")
}

// Every byte of every file is covered: flipping any bit of it is noticed.
func TestAnyDamageIsNoticed(t *testing.T) {
	_, dir := saved(t, 1, 7)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		check := func(what string, b []byte) {
			require.NoError(t, os.WriteFile(path, b, 0o644))
			r, err := Open(dir)
			if err == nil {
				err = r.Load(newToy(2).set())
				r.Close()
			}
			badInput(t, err, dir)
			require.NotContains(t, err.Error(), "\x00", what)
		}
		stride := 1
		if f.Name() == stateFile { // one hash covers all of it
			stride = 7
		}
		for i := 0; i < len(good); i += stride {
			bad := append([]byte{}, good...)
			bad[i] ^= 1
			check(f.Name(), bad)
		}
		for _, n := range []int{0, 1, 7, 8, len(good) / 2, len(good) - 1} {
			check(f.Name()+" cut", good[:n])
		}
		check(f.Name()+" grown", append(append([]byte{}, good...), 'x'))
		require.NoError(t, os.Remove(path))
		_, err = Open(dir)
		require.ErrorContains(t, err, f.Name())
		require.NoError(t, os.WriteFile(path, good, 0o644))
	}
	require.NoError(t, open(t, dir).Load(newToy(2).set()))
}

func TestMismatchListsAllDifferencesAndWritesNothing(t *testing.T) {
	_, dir := saved(t, 1, 7)
	y := newToy(2)
	before := append([]byte{}, y.w.Bytes()...)
	s := &Set{}
	s.Tensor(Weights, "inner.w", []int{2, 3}, y.w)
	s.Tensor(Weights, "inner.wide", []int{2}, make([]float32, 2))
	s.Tensor(Weights, "inner.new", []int{5}, make([]float32, 5))
	s.Tensor(TaskEmbeddings, "table", []int{3, 2}, make([]float32, 6))
	s.Value(Optimizer, "moment", new(int))
	err := open(t, dir).Load(s)
	badInput(t, err, "weights/inner.wide is F64 [2] in the checkpoint, F32 [2] wanted",
		"weights/inner.new [5] is missing in the checkpoint",
		"task_embeddings/table is F32 [4 2] in the checkpoint, F32 [3 2] wanted",
		"value optimizer/moment is missing in the checkpoint",
		"value optimizer/steps of the checkpoint is not in this model")
	require.NotContains(t, err.Error(), "carry", "groups that are not asked for do not matter")
	require.Equal(t, before, y.w.Bytes())

	some := &Set{}
	some.Tensor(EMA, "inner.w", []int{2, 3}, y.w)
	require.NoError(t, open(t, dir).Load(some))
	require.Equal(t, newToy(1).ema.Bytes(), y.w.Bytes())
}

func TestLongMismatchIsCut(t *testing.T) {
	_, dir := saved(t, 1, 7)
	s := &Set{}
	for i := range 50 {
		s.Tensor(Weights, strings.Repeat("x", i+1), []int{1}, make([]float32, 1))
	}
	badInput(t, open(t, dir).Load(s), "and 32 more")
}

func TestSkippedGroupsKeepWhatTheyHave(t *testing.T) {
	_, dir := saved(t, 1, 7)
	y := newToy(2)
	y.table = make([]float32, 6)
	s := &Set{}
	s.Tensor(TaskEmbeddings, "table", []int{3, 2}, y.table)
	s.Tensor(Weights, "inner.w", []int{2, 3}, y.w)
	s.Tensor(Weights, "inner.wide", []int{2}, y.wide)
	s.Value(Carry, "elsewhere", &y.loader)
	require.NoError(t, open(t, dir).Load(s, TaskEmbeddings, Carry))
	require.Equal(t, newToy(1).w.Bytes(), y.w.Bytes())
	require.Equal(t, newToy(2).loader, y.loader)
}

func TestNewerFormatIsRefused(t *testing.T) {
	s, dir := saved(t, 1, 7)
	for _, path := range []string{filepath.Join(dir, stateFile), filepath.Join(s.Dir, indexFile)} {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(b), `"format_version": 1`, `"format_version": 2`, 1)), 0o644))
	}
	_, err := Open(dir)
	badInput(t, err, dir, "format version 2", "reads up to 1")
	_, err = s.Index()
	badInput(t, err, indexFile, "format version 2", "reads up to 1")
}

// A checkpoint written when format 1 was made must load forever.
func TestFormat1StillLoads(t *testing.T) {
	dir, err := Find("testdata/format1", LastSaved)
	require.NoError(t, err)
	got := newToy(2)
	require.NoError(t, open(t, dir).Load(got.set()))
	want := newToy(1)
	require.Equal(t, want.w.Bytes(), got.w.Bytes())
	require.Equal(t, want.loader, got.loader)
	require.Equal(t, want.stream.Uint64(), got.stream.Uint64())
	require.Equal(t, "15cd8001a90a8f7220b7128611f44dd2d491a7e53de0dcf6901566259b824aec", digest(t, dir))
}

// T16, T17: another list of identifiers is refused, also when it is as long.
func TestT16OtherNumberOfIds(t *testing.T) {
	built := IdentityOf([]string{"<blank>", "a"})
	err := built.Check(IdentityOf([]string{"<blank>", "a", "b"}))
	badInput(t, err, "checkpoint built for 2 ids, dataset has 3; use --reset-task-embeddings")
	require.NoError(t, built.Check(IdentityOf([]string{"<blank>", "a"})))
}

func TestT17SameNumberOfOtherIds(t *testing.T) {
	built := IdentityOf([]string{"<blank>", "a", "b"})
	for _, other := range [][]string{{"<blank>", "b", "a"}, {"<blank>", "ab", ""}, {"<blank>a", "", "b"}} {
		badInput(t, built.Check(IdentityOf(other)), "checkpoint built for 3 ids, dataset has 3 others", "use --reset-task-embeddings")
	}
}

func TestConfigChanges(t *testing.T) {
	diff := func(a, b string) (texts []string) {
		changes, err := ConfigChanges(json.RawMessage(a), json.RawMessage(b))
		require.NoError(t, err)
		for _, c := range changes {
			texts = append(texts, c.String())
		}
		return texts
	}
	require.Empty(t, diff(`{"a":1,"arch":{"H_cycles":2}}`, `{"arch": {"H_cycles": 2}, "a": 1}`))
	require.Equal(t, []string{"a: 1, now 2", "arch.H_cycles: 2, now 3", "new: unset, now true", "old: [1,2], now unset"},
		diff(`{"a":1,"arch":{"H_cycles":2},"old":[1,2]}`, `{"a":2,"arch":{"H_cycles":3},"new":true}`))
	require.Equal(t, []string{"threads: 1, now 2"}, diff(`{"threads":1}`, `{"threads":2}`))
	require.Equal(t, []string{"x: 9007199254740993, now 9007199254740992"}, diff(`{"x":9007199254740993}`, `{"x":9007199254740992}`))
	require.Equal(t, []string{"x: none, now [1]"}, diff(`{"x":null}`, `{"x":[1]}`))
	require.Empty(t, diff(`{"x":null}`, `{"x":[]}`))
	require.Empty(t, diff("", ""))
	_, err := ConfigChanges(json.RawMessage("["), nil)
	require.Error(t, err)
}

func TestSetRefusesCallersMistakes(t *testing.T) {
	s := &Set{}
	s.Tensor(Weights, "w", []int{2}, make([]float32, 2))
	require.Panics(t, func() { s.Tensor(Weights, "w", []int{2}, make([]float32, 2)) })
	require.Panics(t, func() { s.Value(Weights, "w", new(int)) })
	require.Panics(t, func() { s.Tensor(Weights, "x", []int{3}, make([]float32, 2)) })
	require.Panics(t, func() { s.Tensor(Weights, "y", []int{2}, []string{"a", "b"}) })
}

// The 1.8 GB table may not exist twice in memory: saving and loading allocate
// far less than the tensors they move.
func TestTensorsAreNotCopied(t *testing.T) {
	table := kernel.Alloc(kernel.Float32, 8<<20)
	s := &Set{}
	s.Tensor(TaskEmbeddings, "table", []int{8 << 10, 1 << 10}, table)
	store := &Store{Dir: t.TempDir()}
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	ref, err := store.Save(1, meta(), s)
	require.NoError(t, err)
	r := open(t, store.Path(ref))
	require.NoError(t, r.Load(s))
	_, err = r.Digest()
	require.NoError(t, err)
	runtime.ReadMemStats(&b)
	require.Less(t, b.TotalAlloc-a.TotalAlloc, uint64(4<<20))
}
