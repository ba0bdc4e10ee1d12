//go:build cgo && linux

// Command openblas times float32 matrix products of this project's kernels
// against OpenBLAS in one process, by turns, on one thread:
//
//	OPENBLAS_CORETYPE=SkylakeX OPENBLAS_NUM_THREADS=1 go run ./bench/openblas
//
// OpenBLAS (Debian: libopenblas0-pthread) is loaded when the program runs.
// OPENBLAS_CORETYPE matters: older versions take new processors for old ones.
// Each figure is the least of several turns, since others use the machine too;
// a ratio above 1 means that OpenBLAS is faster.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha,
	const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static void *load(const char *name) {
	void *lib = dlopen(name, RTLD_NOW);
	return lib ? dlsym(lib, "cblas_sgemm") : 0;
}

static void sgemm(void *f, int ta, int tb, int m, int n, int k,
	const float *a, int lda, const float *b, int ldb, float *c, int ldc) {
	((sgemm_fn)f)(101, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
}
*/
import "C"

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"
	"unsafe"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openblas:", err)
		os.Exit(1)
	}
}

// shapes are the model's products: rows M, outputs N, inputs K.
var shapes = [][3]int{
	{6400, 384, 128}, {6400, 1024, 128}, {6400, 128, 512}, {6400, 1536, 512}, {6400, 512, 512}, {6400, 3072, 512}, {6400, 512, 1536},
	{3232, 768, 256}, {3232, 1536, 256}, {3232, 256, 768}, {901, 1536, 512}, {901, 512, 512}, {901, 3072, 512}, {901, 512, 1536},
}

const turns = 15

func run() error {
	name := "libopenblas.so.0"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	blas := C.load(cname)
	if blas == nil {
		return fmt.Errorf("load %s: not found, or without cblas_sgemm; install libopenblas0-pthread or name the library", name)
	}
	choice, err := pick.Open(pick.Request{Kernel: pick.Auto, Precision: "fp32", Threads: 1})
	if err != nil {
		return err
	}
	be := choice.Backend
	defer be.Close()
	fmt.Printf("%s; OPENBLAS_CORETYPE=%s OPENBLAS_NUM_THREADS=%s\n", choice.Reason, os.Getenv("OPENBLAS_CORETYPE"), os.Getenv("OPENBLAS_NUM_THREADS"))
	fmt.Printf("%-18s %26s %26s %26s\n", "M N K", "forward  ours/OpenBLAS", "dX", "dW")
	var sum [3]float64
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		x, dy, w := random(m*k), random(m*n), random(n*k)
		y, dx, dw := kernel.Alloc(kernel.Float32, m*n), kernel.Alloc(kernel.Float32, m*k), kernel.Alloc(kernel.Float32, n*k)
		y2, dx2, dw2 := kernel.Alloc(kernel.Float32, m*n), kernel.Alloc(kernel.Float32, m*k), kernel.Alloc(kernel.Float32, n*k)
		weight := &kernel.Weight{Data: w, Rows: n, Cols: k, Version: 1}
		const no, trans = 111, 112
		pairs := [3][2]func(){
			{func() { be.Linear(y, x, weight) }, func() { gemm(blas, no, trans, m, n, k, x, k, w, k, y2, n) }},
			{func() { be.LinearDX(dx, dy, weight, false) }, func() { gemm(blas, no, no, m, k, n, dy, n, w, k, dx2, k) }},
			{func() { be.LinearDW(dw, dy, x, n, k, false) }, func() { gemm(blas, trans, no, n, k, m, dy, n, x, k, dw2, k) }},
		}
		fmt.Printf("%-18s", fmt.Sprintf("%d %d %d", m, n, k))
		for i, p := range pairs {
			ours, theirs := math.Inf(1), math.Inf(1)
			for range turns {
				ours, theirs = min(ours, timed(p[0])), min(theirs, timed(p[1]))
			}
			flop := 2 * float64(m) * float64(n) * float64(k) / 1e9
			fmt.Printf(" %8.1f/%6.1f GF/s %5.2f", flop/ours, flop/theirs, ours/theirs)
			sum[i] += math.Log(ours / theirs)
		}
		fmt.Println()
		for i, pair := range [3][2]kernel.Buf{{y, y2}, {dx, dx2}, {dw, dw2}} {
			if d := farthest(pair[0], pair[1]); d > 1e-3 {
				return fmt.Errorf("product %d of %v differs from OpenBLAS by %g", i, s, d)
			}
		}
	}
	c := float64(len(shapes))
	fmt.Printf("geometric mean of time over OpenBLAS's: forward %.2f, dX %.2f, dW %.2f\n", math.Exp(sum[0]/c), math.Exp(sum[1]/c), math.Exp(sum[2]/c))
	return nil
}

func timed(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func gemm(blas unsafe.Pointer, ta, tb, m, n, k int, a kernel.Buf, lda int, b kernel.Buf, ldb int, c kernel.Buf, ldc int) {
	C.sgemm(blas, C.int(ta), C.int(tb), C.int(m), C.int(n), C.int(k),
		(*C.float)(a.Ptr()), C.int(lda), (*C.float)(b.Ptr()), C.int(ldb), (*C.float)(c.Ptr()), C.int(ldc))
}

func random(n int) kernel.Buf {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := kernel.Alloc(kernel.Float32, n)
	for i, f := 0, b.Float32s(); i < n; i++ {
		f[i] = float32(r.NormFloat64())
	}
	return b
}

// farthest returns the largest difference relative to the largest value.
func farthest(a, b kernel.Buf) float64 {
	var d, most float64
	for i, v := range a.Float32s() {
		w := float64(b.Float32s()[i])
		d = max(d, math.Abs(float64(v)-w))
		most = max(most, math.Abs(w))
	}
	return d / most
}
