package rng

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/internal/safetensors"
)

// Both files are numbers recorded from numpy; a copy is kept in testdata so
// that a bare clone tests itself.

func TestLegacy(t *testing.T) { checkLegacy(t, "testdata/numpy_legacy_rng.safetensors") }
func TestPhilox(t *testing.T) { checkPhilox(t, "testdata/numpy_philox.safetensors") }

func TestGoldenLegacy(t *testing.T) {
	goldentest.Each(t, goldentest.Files(t, "numpy_legacy_rng*.safetensors"), checkLegacy)
}

func TestGoldenPhilox(t *testing.T) {
	goldentest.Each(t, goldentest.Files(t, "numpy_philox*.safetensors"), checkPhilox)
}

func open(t *testing.T, path string) *safetensors.File {
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func checkLegacy(t *testing.T, path string) {
	f := open(t, path)
	seed64, err := strconv.ParseUint(f.Metadata["seed"], 10, 32)
	require.NoError(t, err)
	seed := uint32(seed64)

	m := NewLegacy(seed)
	for i, want := range must(f.Uint32s("u32")) {
		require.Equal(t, want, m.Uint32(), "u32 %d", i)
	}
	m = NewLegacy(seed)
	for i, want := range must(f.Int32s("randint_0_8")) {
		require.Equal(t, int(want), m.Intn(8), "randint %d", i)
	}
	m = NewLegacy(seed)
	perms := must(f.Uint8s("permutation_1_10"))
	for i := 0; i < len(perms); i += 9 {
		require.Equal(t, perms[i:i+9], perm9(m), "permutation %d", i/9)
	}
	m = NewLegacy(seed)
	shape := f.Tensors["shuffle_400"].Shape
	shuffled := must(f.Int32s("shuffle_400"))
	for i := range shape[0] {
		got := make([]int32, shape[1])
		m.Perm(got)
		require.Equal(t, shuffled[i*shape[1]:(i+1)*shape[1]], got, "shuffle %d", i)
	}
	m = NewLegacy(seed)
	ns, vs := must(f.Int32s("randint_n.n")), must(f.Int32s("randint_n.value"))
	for i, n := range ns {
		require.Equal(t, int(vs[i]), m.Intn(int(n)), "randint_n %d of %d", i, n)
	}

	m = NewLegacy(seed)
	got := make([]int32, 5)
	for i := range got {
		got[i] = int32(i)
	}
	m.Shuffle(5, func(i, j int) { got[i], got[j] = got[j], got[i] })
	for range 50 {
		got = append(got, int32(m.Intn(8)))
		for _, v := range perm9(m) {
			got = append(got, int32(v))
		}
	}
	for _, n := range []int{1, 2, 3, 4, 1, 30, 17} {
		got = append(got, int32(m.Intn(n)))
	}
	require.Equal(t, must(f.Int32s("mixed")), got)
	for _, want := range must(f.Uint32s("mixed.next_u32")) {
		require.Equal(t, want, m.Uint32())
	}
}

func perm9(m *Legacy) []uint8 {
	b := []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9}
	m.ShuffleBytes(b)
	return b
}

func checkPhilox(t *testing.T, path string) {
	f := open(t, path)
	var seeds []uint64
	require.NoError(t, json.Unmarshal([]byte(f.Metadata["seeds"]), &seeds))
	require.NotEmpty(t, seeds)
	permName := regexp.MustCompile(`^permutation_(\d+)(_after)?$`)
	for _, seed := range seeds {
		pre := "philox" + strconv.FormatUint(seed, 10) + "."
		p := NewPhilox(seed)
		key, counter := p.Key(), p.Counter()
		require.Equal(t, must(f.Uint64s(pre+"key")), key[:])
		require.Equal(t, must(f.Uint64s(pre+"counter")), counter[:])
		for i, want := range must(f.Uint64s(pre + "raw64")) {
			require.Equal(t, want, p.Uint64(), "raw64 %d", i)
		}
		p = NewPhilox(seed)
		for _, name := range f.Names() { // file order is draw order
			if len(name) < len(pre) || name[:len(pre)] != pre || permName.FindString(name[len(pre):]) == "" {
				continue
			}
			shape := f.Tensors[name].Shape
			n := shape[len(shape)-1]
			want := must(f.Int32s(name))
			for i := 0; i < len(want); i += n {
				got := make([]int32, n)
				p.Perm(got)
				require.Equal(t, want[i:i+n], got, "%s %d", name, i/n)
			}
		}
		ns, vs := must(f.Int32s(pre+"integers_n")), must(f.Int32s(pre+"integers_value"))
		for i, n := range ns {
			require.Equal(t, int(vs[i]), 5+p.Intn(int(n)), "integers %d of %d", i, n)
		}
	}
	choice := regexp.MustCompile(`^legacy_choice\.seed(\d+)$`)
	nk := must(f.Int32s("legacy_choice.n_k"))
	found := false
	for _, name := range f.Names() {
		g := choice.FindStringSubmatch(name)
		if g == nil {
			continue
		}
		found = true
		m := NewLegacy(uint32(must(strconv.ParseUint(g[1], 10, 32))))
		var got []int32
		for i := 0; i < len(nk); i += 2 {
			got = append(got, m.Choice(int(nk[i]), int(nk[i+1]), nil)...)
		}
		require.Equal(t, must(f.Int32s(name)), got)
	}
	require.True(t, found)
}

// A restored stream goes on exactly where the saved one was, at every phase
// of its buffers.
func TestRestore(t *testing.T) {
	m, p := NewLegacy(7), NewPhilox(1<<40+3)
	for range 700 {
		m.Uint32()
		p.Uint32()
		if p.Intn(3) == 0 {
			p.Uint64()
		}
		m2, p2 := new(Legacy), new(Philox)
		require.NoError(t, m2.UnmarshalBinary(must(m.MarshalBinary())))
		require.NoError(t, p2.UnmarshalBinary(must(p.MarshalBinary())))
		require.Equal(t, m, m2)
		require.Equal(t, p, p2)
	}
	b := must(m.MarshalBinary())
	require.Error(t, m.UnmarshalBinary(b[1:]))
	b[len(b)-1] = 255
	require.Error(t, m.UnmarshalBinary(b))
	q := must(p.MarshalBinary())
	require.Error(t, p.UnmarshalBinary(append(q, 0)))
	q[len(q)-6] = 9
	require.Error(t, p.UnmarshalBinary(q))
}

func TestBadRange(t *testing.T) {
	require.Panics(t, func() { NewLegacy(1).Intn(0) })
	require.Panics(t, func() { NewPhilox(1).Intn(-1) })
	require.Panics(t, func() { NewLegacy(1).Choice(2, 3, nil) })
}
