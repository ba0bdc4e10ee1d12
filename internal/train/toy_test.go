package train

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/optim"
	"deeploop/internal/rng"
	"deeploop/internal/runlog"
)

// toy fits y = w·x + table[id] on random rows: a whole trainer, in small, with
// every kind of state.
type toy struct {
	b      kernel.Backend
	params []optim.Param
	adam   optim.AdamATan2
	signs  optim.SparseSignSGD
	ema    *optim.EMA
	rate   optim.Cosine
	table  kernel.Buf // [ids, 1]
	data   *rng.Stream
	pos    struct{ Pass, Next int }
	carry  []float32 // the last row's prediction, kept between steps

	each      func(step int)              // called at the end of a step
	poison    map[int]func(y *toy)        // called before the update of a step
	evaluated int                         // evaluations made
	eval      func(context.Context) error // called by every evaluation
	fresh     []string
}

const toyIDs = 3

func newToy(steps int) *toy {
	y := &toy{
		b: ref.New(1), adam: optim.AdamATan2{Beta1: .9, Beta2: .95, WeightDecay: .1},
		signs: optim.SparseSignSGD{WeightDecay: .1}, rate: optim.Cosine{Base: .02, Warmup: 3, Total: steps, MinRatio: .1},
		table: newToyTable(toyIDs), data: rng.NewStream(1, "data"), carry: make([]float32, 1),
	}
	init := rng.NewStream(1, "init")
	for _, n := range []int{4, 2} {
		w := make([]float32, n)
		rng.FillTruncNormal(init, w, .5)
		y.params = append(y.params, optim.NewParam(fmt.Sprintf("toy.w%d", n), kernel.F32(w), kernel.Alloc(kernel.Float32, n), nil))
	}
	y.ema = optim.NewEMA(y.b, y.params, .9)
	return y
}

func newToyTable(ids int) kernel.Buf { return kernel.Alloc(kernel.Float32, ids) }

func (y *toy) row() (x [6]float32, id int32, target float32) {
	for i := range x {
		x[i] = float32(y.data.NormFloat64())
		target += float32(i) * x[i]
	}
	return x, int32(y.data.IntN(toyIDs)), target
}

func (y *toy) Step(ctx context.Context, step int) (Result, error) {
	x, id, target := y.row()
	at, pred := 0, float32(y.table.At(int(id)))+y.carry[0]/8
	for _, p := range y.params {
		for i := range p.W.Len() {
			pred += p.W.Float32s()[i] * x[at+i]
		}
		at += p.W.Len()
	}
	err := pred - target
	at = 0
	for _, p := range y.params {
		for i := range p.G.Len() {
			p.G.SetAt(i, float64(err*x[at+i]))
		}
		at += p.W.Len()
	}
	if f := y.poison[step]; f != nil {
		f(y)
	}
	norm, bad := optim.GradNorm(y.b, y.params)
	if bad != nil {
		return Result{}, bad
	}
	lr := y.rate.At(step)
	y.signs.Step(y.b, y.table, 1, []int32{id}, kernel.F32([]float32{err}), lr)
	y.adam.Step(y.b, y.params, lr)
	y.ema.Update(y.b, y.params)
	y.carry[0] = pred
	y.pos.Next++
	if y.pos.Next == 7 {
		y.pos.Pass, y.pos.Next = y.pos.Pass+1, 0
	}
	loss := float64(err) * float64(err)
	if y.each != nil {
		y.each(step)
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err() // an interruption may not reach into a step
	}
	return Result{Loss: loss, Tokens: 6, Metrics: runlog.Metrics{"loss": loss, "grad_norm": norm, "lr": lr}}, nil
}

func (y *toy) Evaluate(ctx context.Context, progress func(done, total int)) (runlog.Metrics, error) {
	if y.eval != nil {
		if err := y.eval(ctx); err != nil {
			return nil, err
		}
	}
	y.evaluated++
	progress(1, 2)
	y.ema.Swap(y.params)
	defer y.ema.Swap(y.params)
	sum, at := 0.0, 0
	for _, p := range y.params {
		for i := range p.W.Len() {
			d := p.W.At(i) - float64(at+i)
			sum += d * d
		}
		at += p.W.Len()
	}
	progress(2, 2)
	return runlog.Metrics{"distance": math.Sqrt(sum)}, nil
}

func (y *toy) Check() error { return optim.FiniteWeights(y.b, y.params) }

func (y *toy) State(s *checkpoint.Set) {
	for i, p := range y.params {
		n := []int{p.W.Len()}
		s.Tensor(checkpoint.Weights, p.Name, n, p.W)
		s.Tensor(checkpoint.EMA, p.Name, n, y.ema.Avg[i])
		s.Tensor(checkpoint.Optimizer, p.Name+".exp_avg", n, p.M)
		s.Tensor(checkpoint.Optimizer, p.Name+".exp_avg_sq", n, p.V)
	}
	s.Tensor(checkpoint.TaskEmbeddings, "table", []int{y.table.Len(), 1}, y.table)
	s.Tensor(checkpoint.Carry, "z", []int{1}, y.carry)
	s.Value(checkpoint.Optimizer, "steps", &y.adam.Steps)
	s.Value(checkpoint.Carry, "loader", &y.pos)
	s.Value(checkpoint.Streams, "data", y.data)
}

func (y *toy) Restored(fresh ...string) error { y.fresh = fresh; return nil }

// options are those all tests start from.
func options(steps int) Options {
	id := checkpoint.IdentityOf([]string{"<blank>", "a", "b"})
	return Options{
		Steps: steps, EvalEvery: 7, SaveEvery: 3, BestMetric: "distance", BestIsLow: true,
		Meta:     checkpoint.Meta{Kind: "toy", Config: json.RawMessage(`{"lr":0.02,"threads":1}`), Identity: &id},
		Files:    map[string][]byte{"config.yaml": []byte("lr: 0.02\n")},
		Continue: "toy --resume", Now: time.Now, Progress: &runlog.Progress{W: io.Discard, Now: time.Now},
	}
}

// session opens dir and trains y.
func session(ctx context.Context, dir string, how How, o Options, y *toy) error {
	r, err := Open(Folder{Dir: dir, How: how, Owned: []string{"eval"}, Now: time.Now})
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Train(ctx, o, y)
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	r, err := checkpoint.OpenFound(dir, checkpoint.LastSaved)
	require.NoError(t, err)
	defer r.Close()
	d, err := r.Digest()
	require.NoError(t, err)
	return d
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(b)
}

func index(t *testing.T, dir string) checkpoint.Index {
	t.Helper()
	x, err := (&checkpoint.Store{Dir: filepath.Join(dir, checkpoint.Folder)}).Index()
	require.NoError(t, err)
	return x
}

// undisturbed trains without interruption in a new folder.
func undisturbed(t *testing.T, steps int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "whole")
	require.NoError(t, session(context.Background(), dir, New, options(steps), newToy(steps)))
	return dir
}

var (
	wholes   = map[int]string{} // by number of steps
	wholesAt string             // removed by TestMain
)

// whole returns an undisturbed run to compare with, made once; leave it as it
// is.
func whole(t *testing.T, steps int) string {
	t.Helper()
	if wholes[steps] == "" {
		dir := filepath.Join(wholesAt, fmt.Sprint(steps))
		require.NoError(t, session(context.Background(), dir, New, options(steps), newToy(steps)))
		wholes[steps] = dir
	}
	return wholes[steps]
}

// requireSame requires that two runs cannot be told apart.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, read(t, want, MetricsFile), read(t, got, MetricsFile))
	require.Equal(t, digest(t, want), digest(t, got))
	a, b := index(t, want), index(t, got)
	require.Equal(t, a.Best.Step, b.Best.Step)
	require.Equal(t, a.Best.Value, b.Best.Value)
	require.Equal(t, a.Evaluated, b.Evaluated)
}
