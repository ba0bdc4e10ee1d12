package hrm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/internal/goldentest"
	"deeploop/internal/safetensors"
)

func sampleSet(t *testing.T, numAug int, compress string) *augment.Dataset {
	corpus, err := arc.Samples()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "set")
	_, err = augment.Build(context.Background(), corpus, out, augment.BuildOptions{Settings: augment.Settings{
		NumAug: numAug, Seed: 5, MaxGrid: 10, DestOrder: augment.TrainFirst, Compress: compress,
	}})
	require.NoError(t, err)
	return openSet(t, out, augment.OpenDataset)
}

func openSet(t *testing.T, dir string, open func(string) (*augment.Dataset, error)) *augment.Dataset {
	d, err := open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func hashInt32(v []int32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestGoldenLoader(t *testing.T) {
	goldentest.Each(t, goldentest.Files(t, "loader*.json"), func(t *testing.T, file string) {
		checkGoldenLoader(t, loaderFixture(t, file), file)
	})
}

// loaderFixture is the dataset that loaderX.json was recorded on:
// dataset_fixtureX, or else dataset_fixture, or else the only one there is.
func loaderFixture(t *testing.T, file string) string {
	dirs := goldentest.Files(t, "dataset_fixture*")
	own := goldentest.Partner(file, "loader", "dataset_fixture", "")
	for _, dir := range []string{own, filepath.Join(filepath.Dir(file), "dataset_fixture")} {
		if slices.Contains(dirs, dir) {
			return dir
		}
	}
	if len(dirs) > 1 {
		t.Skipf("GOLDEN_DIR has no %s", filepath.Base(own))
	}
	return dirs[0]
}

type evalBatch struct {
	Effective int     `json:"effective"`
	Rows      int     `json:"rows"`
	IDs       []int32 `json:"ids"`
	LabelMin  int32   `json:"label_min"`
	LabelMax  int32   `json:"label_max"`
}

func checkGoldenLoader(t *testing.T, fixture, file string) {
	var want struct {
		Seed       uint64 `json:"seed"`
		LegacySeed uint32 `json:"legacy_seed"`
		BatchSize  int    `json:"global_batch_size"`
		Epochs     int    `json:"epochs_per_iter"`
		Result     []struct {
			Yielded int      `json:"yielded"`
			Hashes  []string `json:"sha256_first_batch"`
		} `json:"result"`
	}
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	d := openSet(t, fixture, augment.OpenArrays)
	tensors, err := safetensors.Open(strings.TrimSuffix(file, ".json") + ".safetensors")
	require.NoError(t, err)
	defer tensors.Close()

	l, err := NewTrainLoader(d.Train, LoaderConfig{want.Seed, want.LegacySeed, want.BatchSize, want.Epochs})
	require.NoError(t, err)
	rows := NewRows(want.BatchSize, d.Train.SeqLen)
	for i, r := range want.Result {
		pre := fmt.Sprintf("iter%d.", i+1)
		examples, err := tensors.Int32s(pre + "example_indices")
		require.NoError(t, err)
		puzzles, err := tensors.Int32s(pre + "puzzle_indices")
		require.NoError(t, err)
		starts, err := tensors.Int32s(pre + "start_index_after")
		require.NoError(t, err)
		require.Len(t, starts, r.Yielded)
		for b := range r.Yielded {
			pass, err := l.Next(rows)
			require.NoError(t, err)
			require.Equal(t, uint64(i+1), pass)
			require.Equal(t, examples[b*want.BatchSize:(b+1)*want.BatchSize], l.example, "pass %d batch %d", i+1, b)
			require.Equal(t, puzzles[b*want.BatchSize:(b+1)*want.BatchSize], l.puzzle)
			require.Equal(t, int(starts[b]), l.start)
			if b == 0 {
				require.Equal(t, r.Hashes, []string{hashInt32(rows.Inputs), hashInt32(rows.Labels), hashInt32(rows.IDs)})
			}
		}
	}

	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &keys))
	evals := 0
	for key, value := range keys {
		size, ok := strings.CutPrefix(key, "eval_batches_bs") // the key says the batch size
		if !ok {
			continue
		}
		evals++
		batch, err := strconv.Atoi(size)
		require.NoError(t, err)
		var batches []evalBatch
		require.NoError(t, json.Unmarshal(value, &batches))
		checkEvalBatches(t, d, batch, batches)
	}
	require.Positive(t, evals)
}

func checkEvalBatches(t *testing.T, d *augment.Dataset, batch int, want []evalBatch) {
	e, err := NewEvalLoader(d.Test, batch, AllAugmentations)
	require.NoError(t, err)
	rows := NewRows(batch, d.Test.SeqLen)
	index := make([]int, batch)
	next := 0
	for _, w := range want {
		n, err := e.Next(rows, index)
		require.NoError(t, err)
		require.Equal(t, w.Effective, n)
		require.Equal(t, w.Rows, batch)
		require.Equal(t, w.IDs, rows.IDs)
		least, most := rows.Labels[0], rows.Labels[0]
		for _, v := range rows.Labels {
			least, most = min(least, v), max(most, v)
		}
		require.Equal(t, []int32{w.LabelMin, w.LabelMax}, []int32{least, most})
		for i := range n {
			require.Equal(t, next, index[i])
			next++
		}
		for i := n; i < batch; i++ {
			require.Equal(t, -1, index[i])
		}
	}
	n, err := e.Next(rows, index)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, d.Test.Examples(), next)
}

// After any batch, also the first and the last of a pass, a loader restored
// from JSON goes on with the same batches.
func TestLoaderRestore(t *testing.T) {
	d := sampleSet(t, 3, "")
	c := LoaderConfig{Seed: 9, LegacySeed: 9, BatchSize: 48, EpochsPerPass: 2}
	fresh := func() *TrainLoader {
		l, err := NewTrainLoader(d.Train, c)
		require.NoError(t, err)
		return l
	}
	l := fresh()
	const batches = 30
	var states [][]byte
	var want []string
	rows := NewRows(c.BatchSize, d.Train.SeqLen)
	digest := func() string { return hashInt32(rows.Inputs) + hashInt32(rows.Labels) + hashInt32(rows.IDs) }
	for range batches {
		state, err := json.Marshal(l)
		require.NoError(t, err)
		states = append(states, state)
		_, err = l.Next(rows)
		require.NoError(t, err)
		want = append(want, digest())
	}
	require.Greater(t, l.State().Pass, uint64(2))
	for i, state := range states {
		l := fresh()
		require.NoError(t, json.Unmarshal(state, l))
		for k := i; k < min(batches, i+9); k++ {
			_, err := l.Next(rows)
			require.NoError(t, err)
			require.Equal(t, want[k], digest(), "batch %d from state %d", k, i)
		}
	}
	other, err := NewTrainLoader(d.Train, LoaderConfig{Seed: 10, LegacySeed: 9, BatchSize: 48, EpochsPerPass: 2})
	require.NoError(t, err)
	require.ErrorContains(t, json.Unmarshal(states[5], other), "seed")
	require.Error(t, other.Restore(LoaderState{}))
}

// Compressed arrays give the same batches.
func TestLoaderCompressed(t *testing.T) {
	a, b := sampleSet(t, 9, ""), sampleSet(t, 9, augment.Zstd)
	require.Equal(t, a.Manifest.DatasetHash, b.Manifest.DatasetHash)
	c := LoaderConfig{Seed: 1, BatchSize: 32, EpochsPerPass: 1}
	la, err := NewTrainLoader(a.Train, c)
	require.NoError(t, err)
	lb, err := NewTrainLoader(b.Train, c)
	require.NoError(t, err)
	ra, rb := NewRows(32, 100), NewRows(32, 100)
	for range 20 {
		_, err = la.Next(ra)
		require.NoError(t, err)
		_, err = lb.Next(rb)
		require.NoError(t, err)
		require.Equal(t, ra, rb)
	}
}

func TestLoaderBatchLargerThanAPass(t *testing.T) {
	d := sampleSet(t, 0, "")
	l, err := NewTrainLoader(d.Train, LoaderConfig{BatchSize: d.Train.Examples() + 1, EpochsPerPass: 1})
	require.NoError(t, err)
	_, err = l.Next(NewRows(d.Train.Examples()+1, d.Train.SeqLen))
	require.ErrorContains(t, err, "global_batch_size")
	for _, c := range []LoaderConfig{{BatchSize: 0, EpochsPerPass: 1}, {BatchSize: 1}} {
		_, err := NewTrainLoader(d.Train, c)
		require.Error(t, err)
	}
}

// A number of augmentations takes the original and the first copies of each
// task, in row order.
func TestEvalLoaderAugmentations(t *testing.T) {
	d := sampleSet(t, 5, "")
	var copyOf []int // of a puzzle, 0 the original
	for g := range d.Test.Groups() {
		for k := range d.Test.GroupIndices[g+1] - d.Test.GroupIndices[g] {
			copyOf = append(copyOf, int(k))
		}
	}
	for _, augs := range []int{AllAugmentations, 0, 2, 99} {
		l, err := NewEvalLoader(d.Test, 7, augs)
		require.NoError(t, err)
		rows, index := NewRows(7, d.Test.SeqLen), make([]int, 7)
		seen, last, batches := 0, -1, 0
		for {
			n, err := l.Next(rows, index)
			require.NoError(t, err)
			if n == 0 {
				break
			}
			batches++
			for i := range n {
				require.Greater(t, index[i], last)
				last = index[i]
				puzzle := d.Test.PuzzleOf(last)
				require.True(t, augs == AllAugmentations || copyOf[puzzle] <= augs)
				require.Equal(t, d.Test.PuzzleIdentifiers[puzzle], rows.IDs[i])
				seen++
			}
		}
		require.Equal(t, l.Rows(), seen)
		require.Equal(t, (seen+6)/7, batches)
		switch augs {
		case 0:
			require.Equal(t, d.Manifest.Counts.TestPairs, l.Rows())
		case AllAugmentations, 99:
			require.Equal(t, d.Test.Examples(), l.Rows())
		}
	}
	_, err := NewEvalLoader(d.Test, 0, 1)
	require.Error(t, err)
	_, err = NewEvalLoader(d.Test, 1, -2)
	require.Error(t, err)
}
