package profile

import (
	"time"

	"deeploop/internal/kernel"
)

// Probe measures ceilings: what a backend multiplies and copies at best. It
// keeps every measurement, and its ceilings are their medians, since a shared
// machine changes all the time.
type Probe struct {
	backend  kernel.Backend
	limits   kernel.Limits // nil: the backend has no probes, ceilings are 0
	now      func() time.Time
	act      kernel.DType
	rounds   int
	products []float64 // FLOP/s
	copies   []float64 // bytes/s
	dst, src kernel.Buf
}

// A probe takes about probeTime. Copies are of copyFloats float32, far more
// than caches hold.
const (
	probeTime  = 10 * time.Millisecond
	copyFloats = 8 << 20
)

// NewProbe returns a Probe of b, or of the backend behind it if b is a
// Recorder, for products of activations of type act. It reads the clock now.
func NewProbe(b kernel.Backend, act kernel.DType, now func() time.Time) *Probe {
	if r, ok := b.(*Recorder); ok {
		b = r.Inner()
	}
	limits, _ := b.(kernel.Limits)
	return &Probe{backend: b, limits: limits, act: act, now: now}
}

// Products probes products once and returns FLOP/s, 0 without probes.
func (p *Probe) Products() float64 {
	if p.limits == nil {
		return 0
	}
	for n := 1; p.rounds == 0; n *= 2 { // find out how many rounds take the time
		first, _ := p.run(n)
		again, _ := p.run(n)                                              // the system may have stopped one of them
		if took := min(first, again); took >= probeTime/4 || n >= 1<<24 { // a clock that stands still ends it too
			p.rounds = max(1, int(float64(n)*float64(probeTime)/float64(max(took, probeTime/4))))
		}
	}
	took, flops := p.run(p.rounds)
	p.products = append(p.products, flops/took.Seconds())
	return p.products[len(p.products)-1]
}

func (p *Probe) run(rounds int) (time.Duration, float64) {
	start := p.now()
	flops := p.limits.ProbeProducts(p.act, rounds)
	return p.now().Sub(start), flops
}

// Copy probes copies once and returns bytes/s, read and written together, 0
// without probes. The first call takes 64 MB of memory for good.
func (p *Probe) Copy() float64 {
	if p.limits == nil {
		return 0
	}
	if p.src.Absent() {
		p.dst, p.src = kernel.Alloc(kernel.Float32, copyFloats), kernel.Alloc(kernel.Float32, copyFloats)
		for i, s := 0, p.src.Float32s(); i < len(s); i++ { // pages of its own, not the system's one of zeros
			s[i] = 1
		}
		p.limits.ProbeCopy(p.dst, p.src)
	}
	start := p.now()
	p.limits.ProbeCopy(p.dst, p.src)
	p.copies = append(p.copies, 8*copyFloats/p.now().Sub(start).Seconds())
	return p.copies[len(p.copies)-1]
}

// Ceilings returns the medians: FLOP/s and bytes/s, 0 where nothing was
// probed.
func (p *Probe) Ceilings() (products, copies float64) { return Median(p.products), Median(p.copies) }
