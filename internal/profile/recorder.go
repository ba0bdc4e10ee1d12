// Package profile finds out where the time of a computation goes. A Recorder
// stands between the graphs and a kernel.Backend and notes every call; a Probe
// measures what the machine can do at best; a Report sets one against the
// other.
package profile

import (
	"runtime"
	"time"

	"deeploop/internal/kernel"
)

// Recorder is a kernel.Backend that hands every call to another one and notes
// its time, operations and bytes between Start and Stop. That costs two
// readings of the clock a call. Weights stay packed by the inner backend, and
// a call that packs one, the first after an optimizer step, counts the time
// for it.
type Recorder struct {
	kernel.Backend // the one that computes
	now            func() time.Time
	on             bool
	began          time.Time
	heap           uint64 // allocated in all, when Start was called

	Record
}

// Record is what was noted between Start and Stop.
type Record struct {
	ops     map[Op]Calls
	units   int
	seconds float64
	heaped  float64 // bytes allocated on the heap
}

// Op tells calls apart: what was called, and for products the matrix [N, K].
type Op struct {
	Name  string
	Group Group
	N, K  int // 0 where shapes are not told apart
}

// Calls are the calls of one Op together.
type Calls struct {
	Calls   int
	Seconds float64
	Flops   float64
	Bytes   float64
}

var _ kernel.Backend = (*Recorder)(nil)

// New returns a Recorder in front of b that reads the clock now.
func New(b kernel.Backend, now func() time.Time) *Recorder {
	return &Recorder{Backend: b, now: now, Record: Record{ops: map[Op]Calls{}}}
}

// Inner returns the backend that computes.
func (r *Recorder) Inner() kernel.Backend { return r.Backend }

// Start begins a part that counts.
func (r *Recorder) Start() {
	r.heap, r.on = heap(), true
	r.began = r.now()
}

// Stop ends it: units of work were done (steps, segments). It returns the
// seconds since Start.
func (r *Recorder) Stop(units int) float64 {
	s := r.now().Sub(r.began).Seconds()
	r.on = false
	r.heaped += float64(heap() - r.heap)
	r.seconds += s
	r.units += units
	return s
}

// Timing is one measurement.
type Timing struct {
	Seconds float64
	Flops   float64 // operations of products and attention that ran
}

// Time runs f as one unit of work.
func (r *Recorder) Time(f func() error) (Timing, error) {
	before := r.Flops()
	r.Start()
	err := f()
	seconds := r.Stop(1)
	return Timing{seconds, r.Flops() - before}, err
}

// Take returns what was noted so far and begins anew.
func (r *Recorder) Take() Record {
	done := r.Record
	r.Record = Record{ops: map[Op]Calls{}}
	return done
}

// Units returns the units of work that were done.
func (r *Record) Units() int { return r.units }

// Flops returns the operations counted so far.
func (r *Record) Flops() (f float64) {
	for _, c := range r.ops {
		f += c.Flops
	}
	return f
}

// heap returns the bytes of the heap that were ever allocated.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func (r *Recorder) note(op Op, start time.Time, w work) {
	if !r.on {
		return
	}
	took := r.now().Sub(start).Seconds()
	c := r.ops[op]
	c.add(Calls{1, took, w.flops, w.bytes})
	r.ops[op] = c
}

// Linear implements kernel.Backend.
func (r *Recorder) Linear(y, x kernel.Buf, w *kernel.Weight) {
	start := r.now()
	r.Backend.Linear(y, x, w)
	r.note(Op{"Linear", Products, w.Rows, w.Cols}, start, product(x.Len()/w.Cols, w.Rows, w.Cols, size(y, x)+weight(w, x)))
}

// LinearDX implements kernel.Backend.
func (r *Recorder) LinearDX(dx, dy kernel.Buf, w *kernel.Weight, accumulate bool) {
	start := r.now()
	r.Backend.LinearDX(dx, dy, w, accumulate)
	r.note(Op{"LinearDX", Products, w.Rows, w.Cols}, start,
		product(dx.Len()/w.Cols, w.Rows, w.Cols, size(dy)+twice(dx, accumulate)+weight(w, dy)))
}

// LinearDW implements kernel.Backend.
func (r *Recorder) LinearDW(dw, dy, x kernel.Buf, n, k int, accumulate bool) {
	start := r.now()
	r.Backend.LinearDW(dw, dy, x, n, k, accumulate)
	r.note(Op{"LinearDW", Products, n, k}, start, product(x.Len()/k, n, k, size(dy, x)+twice(dw, accumulate)))
}

// Embed implements kernel.Backend.
func (r *Recorder) Embed(y kernel.Buf, a kernel.EmbedArgs) {
	start := r.now()
	r.Backend.Embed(y, a)
	r.note(Op{Name: "Embed", Group: Other}, start, work{bytes: size(y) + embedBytes(a)})
}

// EmbedBackward implements kernel.Backend.
func (r *Recorder) EmbedBackward(dTable, dPuzzle, dPos, dy kernel.Buf, a kernel.EmbedArgs, accumulate bool) {
	start := r.now()
	r.Backend.EmbedBackward(dTable, dPuzzle, dPos, dy, a, accumulate)
	r.note(Op{Name: "EmbedBackward", Group: Other}, start,
		work{bytes: size(dy, dPuzzle) + twice(dTable, accumulate) + twice(dPos, accumulate) + 4*float64(len(a.IDs))})
}

// Attention implements kernel.Backend.
func (r *Recorder) Attention(o, lse, qkv kernel.Buf, s kernel.AttentionShape) {
	start := r.now()
	r.Backend.Attention(o, lse, qkv, s)
	r.note(Op{Name: "Attention", Group: Attention}, start, attention(o, s, size(o, lse, qkv, s.Cos, s.Sin)))
}

// AttentionBackward implements kernel.Backend.
func (r *Recorder) AttentionBackward(dqkv, do, o, qkv, lse kernel.Buf, s kernel.AttentionShape) {
	start := r.now()
	r.Backend.AttentionBackward(dqkv, do, o, qkv, lse, s)
	w := attention(o, s, size(dqkv, do, o, qkv, lse, s.Cos, s.Sin))
	w.flops *= 2.5
	r.note(Op{Name: "AttentionBackward", Group: Attention}, start, w)
}

// AttentionCached implements kernel.Backend.
func (r *Recorder) AttentionCached(o, qkv, keys, values kernel.Buf, past int, s kernel.AttentionShape) {
	start := r.now()
	r.Backend.AttentionCached(o, qkv, keys, values, past, s)
	r.note(Op{Name: "AttentionCached", Group: Attention}, start, attentionCached(o, qkv, keys, past, s))
}

// QKNorm implements kernel.Backend.
func (r *Recorder) QKNorm(y, rstd, qkv, gq, gk kernel.Buf, s kernel.AttentionShape, eps float64) {
	start := r.now()
	r.Backend.QKNorm(y, rstd, qkv, gq, gk, s, eps)
	r.note(Op{Name: "QKNorm", Group: Other}, start, work{bytes: size(y, rstd, qkv, gq, gk)})
}

// QKNormBackward implements kernel.Backend.
func (r *Recorder) QKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk kernel.Buf, s kernel.AttentionShape) {
	start := r.now()
	r.Backend.QKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk, s)
	r.note(Op{Name: "QKNormBackward", Group: Other}, start, work{bytes: size(dqkv, dy, qkv, rstd, gq, gk) + 2*size(dgq, dgk)})
}

// ResidualNorm implements kernel.Backend.
func (r *Recorder) ResidualNorm(y, rstd, x, z, gain kernel.Buf, alpha, eps float64, d int) {
	start := r.now()
	r.Backend.ResidualNorm(y, rstd, x, z, gain, alpha, eps, d)
	r.note(Op{Name: "ResidualNorm", Group: Other}, start, work{bytes: size(y, rstd, x, z, gain)})
}

// ResidualNormBackward implements kernel.Backend. Of y, or x and z, it reads
// what the inner backend needs: y without gain, x and z with.
func (r *Recorder) ResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain kernel.Buf, alpha float64, d int) {
	start := r.now()
	r.Backend.ResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain, alpha, d)
	read := size(y)
	if !gain.Absent() {
		read = size(x, z, gain)
	}
	r.note(Op{Name: "ResidualNormBackward", Group: Other}, start, work{bytes: size(dx, dz, dy, rstd) + 2*size(dgain) + read})
}

// SwiGLU implements kernel.Backend.
func (r *Recorder) SwiGLU(y, gu kernel.Buf, f int) {
	start := r.now()
	r.Backend.SwiGLU(y, gu, f)
	r.note(Op{Name: "SwiGLU", Group: Other}, start, work{bytes: size(y, gu)})
}

// SwiGLUBackward implements kernel.Backend.
func (r *Recorder) SwiGLUBackward(dgu, dy, gu kernel.Buf, f int) {
	start := r.now()
	r.Backend.SwiGLUBackward(dgu, dy, gu, f)
	r.note(Op{Name: "SwiGLUBackward", Group: Other}, start, work{bytes: size(dgu, dy, gu)})
}

// Activate implements kernel.Backend.
func (r *Recorder) Activate(y, x kernel.Buf, kind kernel.Activation) {
	start := r.now()
	r.Backend.Activate(y, x, kind)
	r.note(Op{Name: "Activate", Group: Other}, start, work{bytes: size(y, x)})
}

// ActivateBackward implements kernel.Backend.
func (r *Recorder) ActivateBackward(dx, dy, x kernel.Buf, kind kernel.Activation) {
	start := r.now()
	r.Backend.ActivateBackward(dx, dy, x, kind)
	r.note(Op{Name: "ActivateBackward", Group: Other}, start, work{bytes: size(dx, dy, x)})
}

// CrossEntropy implements kernel.Backend.
func (r *Recorder) CrossEntropy(loss []float64, pred []int32, logits kernel.Buf, labels []int32, v int, kind kernel.CrossEntropyKind) {
	start := r.now()
	r.Backend.CrossEntropy(loss, pred, logits, labels, v, kind)
	r.note(Op{Name: "CrossEntropy", Group: Other}, start, work{bytes: size(logits) + float64(8*len(loss)+4*len(pred)+4*len(labels))})
}

// CrossEntropyBackward implements kernel.Backend.
func (r *Recorder) CrossEntropyBackward(dlogits, logits kernel.Buf, labels []int32, scale []float64, v int, kind kernel.CrossEntropyKind) {
	start := r.now()
	r.Backend.CrossEntropyBackward(dlogits, logits, labels, scale, v, kind)
	r.note(Op{Name: "CrossEntropyBackward", Group: Other}, start, work{bytes: size(dlogits, logits) + float64(4*len(labels)+8*len(scale))})
}

// Add implements kernel.Backend.
func (r *Recorder) Add(dst, a, b, c kernel.Buf) {
	start := r.now()
	r.Backend.Add(dst, a, b, c)
	r.note(Op{Name: "Add", Group: Other}, start, work{bytes: size(dst, a, b, c)})
}

// Convert implements kernel.Backend.
func (r *Recorder) Convert(dst, src kernel.Buf) {
	start := r.now()
	r.Backend.Convert(dst, src)
	r.note(Op{Name: "Convert", Group: Other}, start, work{bytes: size(dst, src)})
}

// AdamATan2 implements kernel.Backend.
func (r *Recorder) AdamATan2(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	start := r.now()
	r.Backend.AdamATan2(w, g, m, v, h)
	r.note(Op{Name: "AdamATan2", Group: Other}, start, work{bytes: size(g) + 2*size(w, m, v, h.Average)})
}

// AdamW implements kernel.Backend.
func (r *Recorder) AdamW(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	start := r.now()
	r.Backend.AdamW(w, g, m, v, h)
	r.note(Op{Name: "AdamW", Group: Other}, start, work{bytes: size(g) + 2*size(w, m, v, h.Average)})
}

// SignSGD implements kernel.Backend.
func (r *Recorder) SignSGD(w, g kernel.Buf, lr, wd float64) {
	start := r.now()
	r.Backend.SignSGD(w, g, lr, wd)
	r.note(Op{Name: "SignSGD", Group: Other}, start, work{bytes: size(g) + 2*size(w)})
}

// Lerp implements kernel.Backend.
func (r *Recorder) Lerp(dst, src kernel.Buf, rate float64) {
	start := r.now()
	r.Backend.Lerp(dst, src, rate)
	r.note(Op{Name: "Lerp", Group: Other}, start, work{bytes: size(src) + 2*size(dst)})
}

// SumSquares implements kernel.Backend.
func (r *Recorder) SumSquares(x kernel.Buf) float64 {
	start := r.now()
	s := r.Backend.SumSquares(x)
	r.note(Op{Name: "SumSquares", Group: Other}, start, work{bytes: size(x)})
	return s
}
