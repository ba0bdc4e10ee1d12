package kerneltest

import (
	"testing"

	"deeploop/internal/kernel"
)

// Speed benchmarks one backend with the shapes of HRM (hidden 128 and 512,
// 101 and 901 positions): GFLOP/s where a case states its work, and GB/s of
// the memory each call must at least move.
func Speed(b *testing.B, be kernel.Backend, types ...kernel.DType) {
	for _, typ := range types {
		for _, c := range SpeedCases() {
			b.Run(typ.String()+"/"+c.Op+"/"+c.Name, func(b *testing.B) {
				v := c.inputs(typ, typ, 0)
				c.Call(be, v)
				b.SetBytes(c.bytes(typ))
				for b.Loop() {
					c.Call(be, v)
				}
				if c.Flops > 0 {
					b.ReportMetric(c.Flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				}
			})
		}
	}
}
