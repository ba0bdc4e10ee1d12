package kerneltest

import (
	"testing"
	"time"

	"deeploop/internal/kernel"
)

// Speed benchmarks one backend with the shapes of HRM (hidden 128, 256 and
// 512; 101 and 901 positions) and with buffers far larger than any cache:
// GFLOP/s where a case states its work, GB/s of the memory each call must at
// least move, and, where the backend can probe it, of-copy: that rate over the
// rate of a plain copy that moves as many bytes, measured in turns with it.
func Speed(b *testing.B, be kernel.Backend, types ...kernel.DType) {
	for _, typ := range types {
		for _, c := range SpeedCases() {
			if c.MasterOnly && typ != kernel.Float32 {
				continue
			}
			b.Run(typ.String()+"/"+c.Op+"/"+c.Name, func(b *testing.B) { c.speed(b, be, typ) })
		}
	}
}

func (c *Case) speed(b *testing.B, be kernel.Backend, typ kernel.DType) {
	v := c.inputs(typ, typ, 0)
	n := c.bytes(typ)
	probe := func() {}
	if l, ok := be.(kernel.Limits); ok && c.Flops == 0 {
		dst, src := kernel.Alloc(kernel.Float32, int(n/8)+1), kernel.Alloc(kernel.Float32, int(n/8)+1)
		probe = func() { l.ProbeCopy(dst, src) }
	}
	c.Call(be, v)
	probe()
	// A call may be shorter than a clock reading is good for: some together.
	batch := max(1, int(200_000/n))
	var work, copying time.Duration
	b.ResetTimer()
	for range b.N {
		t0 := b.Elapsed()
		for range batch {
			probe()
		}
		t1 := b.Elapsed()
		for range batch {
			c.Call(be, v)
		}
		copying += t1 - t0
		work += b.Elapsed() - t1
	}
	calls := float64(b.N * batch)
	b.ReportMetric(float64(work.Nanoseconds())/calls, "ns/op")
	b.ReportMetric(float64(n)*calls/work.Seconds()/1e9, "GB/s")
	if c.Flops > 0 {
		b.ReportMetric(c.Flops*calls/work.Seconds()/1e9, "GFLOP/s")
	} else if copying > work/1000 {
		b.ReportMetric(copying.Seconds()/work.Seconds(), "of-copy")
	}
}
