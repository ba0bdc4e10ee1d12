package main

import (
	"testing"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/ref"
)

// Every operation runs, in both types: shapes fit.
func TestOperationsRun(t *testing.T) {
	be := ref.New(2)
	for _, g := range operations() {
		for _, act := range []kernel.DType{kernel.Float32, kernel.BFloat16} {
			g.make(be, act, g.bases[0])()
		}
	}
}
