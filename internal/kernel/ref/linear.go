package ref

import "deeploop/internal/kernel"

// Linear: y = x · Wᵀ.
func (b *Backend) Linear(y, x kernel.Buf, w *kernel.Weight) {
	m := kernel.CheckLinear(y, x, w)
	defer b.flush()
	if x.Type() == kernel.Float64 {
		linear(b, out[float64](b, y, false), in[float64](b, x), w.Data.Float64s(), m, w.Rows, w.Cols)
	} else {
		linear(b, out[float32](b, y, false), in[float32](b, x), w.Data.Float32s(), m, w.Rows, w.Cols)
	}
}

func linear[S real](b *Backend, y, x, w []S, m, n, k int) {
	b.split(m, func(lo, hi int) {
		for n0 := 0; n0 < n; n0 += 64 { // 64 rows of W stay in cache over all rows of x
			n1 := min(n0+64, n)
			for i := lo; i < hi; i++ {
				dots(y[i*n+n0:i*n+n1], x[i*k:i*k+k], w[n0*k:n1*k])
			}
		}
	})
}

// dots writes the inner products of x with each row of w.
func dots[S real](y, x, w []S) {
	k := len(x)
	j := 0
	for ; j+4 <= len(y); j += 4 {
		w0, w1, w2, w3 := w[j*k:][:k], w[(j+1)*k:][:k], w[(j+2)*k:][:k], w[(j+3)*k:][:k]
		var s0, s1, s2, s3 S
		for p, v := range x {
			s0 += v * w0[p]
			s1 += v * w1[p]
			s2 += v * w2[p]
			s3 += v * w3[p]
		}
		y[j], y[j+1], y[j+2], y[j+3] = s0, s1, s2, s3
	}
	for ; j < len(y); j++ {
		y[j] = dot(x, w[j*k:])
	}
}

func dot[S real](x, y []S) S {
	y = y[:len(x)]
	var s S
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// axpy: y += a·x.
func axpy[S real](y []S, a S, x []S) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

// LinearDX: dx (+)= dy · W.
func (b *Backend) LinearDX(dx, dy kernel.Buf, w *kernel.Weight, accumulate bool) {
	m := kernel.CheckLinearDX(dx, dy, w)
	defer b.flush()
	if dx.Type() == kernel.Float64 {
		mulAdd(b, out[float64](b, dx, accumulate), in[float64](b, dy), w.Data.Float64s(), m, w.Rows, w.Cols, w.Rows, 1, accumulate)
	} else {
		mulAdd(b, out[float32](b, dx, accumulate), in[float32](b, dy), w.Data.Float32s(), m, w.Rows, w.Cols, w.Rows, 1, accumulate)
	}
}

// LinearDW: dw (+)= dyᵀ · x.
func (b *Backend) LinearDW(dw, dy, x kernel.Buf, n, k int, accumulate bool) {
	m := kernel.CheckLinearDW(dw, dy, x, n, k)
	defer b.flush()
	if dw.Type() == kernel.Float64 {
		mulAdd(b, dw.Float64s(), in[float64](b, dy), in[float64](b, x), n, m, k, 1, n, accumulate)
	} else {
		mulAdd(b, dw.Float32s(), in[float32](b, dy), in[float32](b, x), n, m, k, 1, n, accumulate)
	}
}

// mulAdd: c[m,k] (+)= a · w[n,k] with a(i,j) = a[i*ai + j*aj].
func mulAdd[S real](b *Backend, c, a, w []S, m, n, k, ai, aj int, accumulate bool) {
	b.split(m, func(lo, hi int) {
		if !accumulate {
			clear(c[lo*k : hi*k])
		}
		for j0 := 0; j0 < n; j0 += 32 { // 32 rows of w stay in cache over all rows of c
			j1 := min(j0+32, n)
			for i := lo; i < hi; i++ {
				addRows(c[i*k:i*k+k], a[i*ai+j0*aj:], aj, w[j0*k:j1*k])
			}
		}
	})
}

// addRows: row += Σ_j a[j*step] · w[j,:], w having rows as long as row.
func addRows[S real](row, a []S, step int, w []S) {
	k := len(row)
	n := len(w) / k
	j := 0
	for ; j+4 <= n; j += 4 {
		w0, w1, w2, w3 := w[j*k:][:k], w[(j+1)*k:][:k], w[(j+2)*k:][:k], w[(j+3)*k:][:k]
		a0, a1, a2, a3 := a[j*step], a[(j+1)*step], a[(j+2)*step], a[(j+3)*step]
		for p, v := range row {
			row[p] = v + (a0*w0[p] + a1*w1[p]) + (a2*w2[p] + a3*w3[p])
		}
	}
	for ; j < n; j++ {
		axpy(row, a[j*step], w[j*k:][:k])
	}
}
