package profile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
	"deeploop/internal/kerneltest"
)

// clock advances by a millisecond at every reading.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

// A method that kernel.Backend gains must be recorded too: the compiler's own
// forwarding would leave it out of every profile.
func TestEveryMethodIsRecorded(t *testing.T) {
	typ, iface := reflect.TypeFor[*Recorder](), reflect.TypeFor[kernel.Backend]()
	for i := range iface.NumMethod() {
		name := iface.Method(i).Name
		m, ok := typ.MethodByName(name)
		require.True(t, ok)
		f := runtime.FuncForPC(m.Func.Pointer())
		file, _ := f.FileLine(f.Entry())
		if name == "Name" || name == "Threads" || name == "Close" {
			continue
		}
		require.True(t, strings.HasSuffix(file, "recorder.go"), "%s is not recorded (%s)", name, file)
	}
}

func TestCallsArriveUnchanged(t *testing.T) {
	kerneltest.Agree(t, func(threads int) kernel.Backend {
		r := New(ref.New(threads), time.Now)
		r.Start()
		return r
	}, kernel.Float32)
}

func TestRecord(t *testing.T) {
	const m, n, k = 5, 3, 7
	r := New(ref.New(1), clock())
	w := &kernel.Weight{Data: kernel.Alloc(kernel.Float32, n*k), Rows: n, Cols: k, Version: 1}
	x, y := kernel.Alloc(kernel.BFloat16, m*k), kernel.Alloc(kernel.BFloat16, m*n)
	r.Linear(y, x, w) // before Start: not recorded
	r.Start()
	r.Linear(y, x, w)
	r.Linear(y, x, w)
	r.LinearDW(w.Data, y, x, n, k, true)
	r.Convert(x, x)
	require.InDelta(t, 0.009, r.Stop(2), 1e-9, "four calls of two readings, and one")
	r.Linear(y, x, w)
	require.Equal(t, 2, r.Units())
	require.Equal(t, 3*2.0*m*n*k, r.Flops())

	rep := r.Report("step", NewProbe(r, kernel.BFloat16, clock()))
	require.Equal(t, "ref", rep.Kernel)
	require.Equal(t, "bf16", rep.Precision)
	require.InDelta(t, 0.0045, rep.Seconds, 1e-9, "per unit")
	require.Len(t, rep.Ops, 3)
	linear := rep.Ops[0]
	require.Equal(t, "Linear", linear.Op)
	require.Equal(t, []int{n, k}, []int{linear.N, linear.K})
	require.Equal(t, 1.0, linear.Calls)
	require.InDelta(t, 0.001, linear.Seconds, 1e-9)
	require.InDelta(t, 2*m*n*k/0.001/1e9, linear.GFLOPS, 1e-12)
	require.InDelta(t, 2*(m*n+m*k+n*k)/0.001/1e9, linear.GBs, 1e-12, "a weight counts as bf16")
	require.InDelta(t, 2.0/9, linear.Share, 1e-9)
	require.Len(t, rep.Groups, 3)
	require.InDelta(t, 3.0/9, rep.Groups[Products].Share, 1e-9)
	require.Zero(t, rep.Groups[Attention].Seconds)
	require.InDelta(t, 1.0/9, rep.Groups[Other].Share, 1e-9)
	require.InDelta(t, 5.0/9, rep.RestShare, 1e-9)
	for _, l := range rep.Ops {
		if l.Op == "LinearDW" {
			require.InDelta(t, (2*(m*n+m*k)+2*4*n*k)/0.001/1e9, l.GBs, 1e-12, "an accumulated gradient is read and written")
		}
	}

	r.Take()
	require.Zero(t, r.Flops())
	require.Zero(t, r.Report("step", NewProbe(r, kernel.BFloat16, clock())).Units)
}

// limited makes rounds of 1000 operations in a microsecond each.
type limited struct {
	kernel.Backend
	now   time.Time
	stall time.Duration // once, as when the system runs something else
}

func newLimited() *limited { return &limited{Backend: ref.New(1)} }

func (l *limited) clock() time.Time { return l.now }

func (l *limited) ProbeProducts(_ kernel.DType, n int) float64 {
	l.now = l.now.Add(time.Duration(n)*time.Microsecond + l.stall)
	l.stall = 0
	return 1000 * float64(n)
}

func (l *limited) ProbeCopy(dst, src kernel.Buf) {
	l.now = l.now.Add(time.Millisecond)
	copy(dst.Float32s(), src.Float32s())
}

func TestProbe(t *testing.T) {
	be := newLimited()
	p := NewProbe(New(be, be.clock), kernel.Float32, be.clock)
	require.InDelta(t, 1e9, p.Products(), 1)
	require.Equal(t, int(probeTime/time.Microsecond), p.rounds)
	p.Products()
	p.Copy()
	products, copies := p.Ceilings()
	require.InDelta(t, 1e9, products, 1)
	require.InDelta(t, 8*copyFloats/0.001, copies, 1)
	none := NewProbe(struct{ kernel.Backend }{ref.New(1)}, kernel.Float32, clock())
	require.Zero(t, none.Products()+none.Copy(), "a backend without probes")
}

// A stall while a probe finds its length does not make it too short to mean
// anything.
func TestProbeOutlastsAStall(t *testing.T) {
	be := newLimited()
	be.stall = 100 * time.Millisecond
	p := NewProbe(be, kernel.Float32, be.clock)
	require.InDelta(t, 1e9, p.Products(), 1)
	require.Equal(t, int(probeTime/time.Microsecond), p.rounds)
}

func TestMedian(t *testing.T) {
	require.Zero(t, Median(nil))
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, Median([]float64{4, 3, 1, 2}))
}

func TestReportAsTextAndJSON(t *testing.T) {
	be := newLimited()
	r := New(be, clock())
	r.Start()
	r.SumSquares(kernel.Alloc(kernel.Float32, 1000))
	r.LinearDX(kernel.Alloc(kernel.Float32, 8), kernel.Alloc(kernel.Float32, 4), &kernel.Weight{Data: kernel.Alloc(kernel.Float32, 8), Rows: 2, Cols: 4}, false)
	r.Stop(1)
	p := NewProbe(be, kernel.Float32, be.clock)
	p.Products()
	rep := r.Report("training step", p)
	var text, doc bytes.Buffer
	require.NoError(t, rep.Write(&text))
	for _, want := range []string{"mean of 1 training step, kernel ref, fp32, 1 thread\n", "LinearDX 2x4", "SumSquares", "attention", "rest: graph and Go", "100.0%", "ceilings here: products"} {
		require.Contains(t, text.String(), want)
	}
	require.NoError(t, rep.WriteJSON(&doc))
	var back Report
	require.NoError(t, json.Unmarshal(doc.Bytes(), &back))
	require.Equal(t, rep, back)
}

// What a recorded call costs beside the call.
func BenchmarkRecorder(b *testing.B) {
	r := New(nothing{}, time.Now)
	r.Start()
	w := &kernel.Weight{Rows: 1, Cols: 1}
	for b.Loop() {
		r.Linear(kernel.Buf{}, kernel.Buf{}, w)
	}
}

type nothing struct{ kernel.Backend }

func (nothing) Linear(kernel.Buf, kernel.Buf, *kernel.Weight) {}
