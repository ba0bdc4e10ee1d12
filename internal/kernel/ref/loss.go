package ref

import (
	"math"

	"deeploop/internal/kernel"
)

// CrossEntropy: loss and first arg-max per row, in float64.
func (b *Backend) CrossEntropy(loss []float64, pred []int32, logits kernel.Buf, labels []int32, v int, kind kernel.CrossEntropyKind) {
	rows := kernel.CheckCrossEntropy(logits, labels, v, len(loss), len(pred))
	if logits.Type() == kernel.Float64 {
		crossEntropy(b, loss, pred, in[float64](b, logits), labels, rows, v, kind)
	} else {
		crossEntropy(b, loss, pred, in[float32](b, logits), labels, rows, v, kind)
	}
}

func crossEntropy[S real](b *Backend, loss []float64, pred []int32, logits []S, labels []int32, rows, v int, kind kernel.CrossEntropyKind) {
	b.split(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := logits[r*v : r*v+v]
			best := 0
			for i, x := range row {
				if x > row[best] {
					best = i
				}
			}
			pred[r], loss[r] = int32(best), 0
			if labels[r] < 0 {
				continue
			}
			x, top := float64(row[labels[r]]), float64(row[best])
			if kind == kernel.Stablemax {
				s, _ := stable(x)
				loss[r] = -math.Log(s / sumStable(row))
			} else {
				loss[r] = math.Log(sumExp(row, top)) - (x - top)
			}
		}
	})
}

// stable returns stablemax's s(x) and its derivative. Both branches of the
// formula are never computed at once: at x = 1 the unused one has a pole.
func stable(x float64) (s, ds float64) {
	if x < 0 {
		s = 1 / (1 - x + 1e-30)
		return s, s * s
	}
	return x + 1, 1
}

func sumStable[S real](row []S) (sum float64) {
	for _, x := range row {
		s, _ := stable(float64(x))
		sum += s
	}
	return sum
}

func sumExp[S real](row []S, top float64) (sum float64) {
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return sum
}

// CrossEntropyBackward: scale times the gradient of each row's loss.
func (b *Backend) CrossEntropyBackward(dlogits, logits kernel.Buf, labels []int32, scale []float64, v int, kind kernel.CrossEntropyKind) {
	rows := kernel.CheckCrossEntropyBackward(dlogits, logits, labels, v, len(scale))
	defer b.flush()
	if logits.Type() == kernel.Float64 {
		crossEntropyBackward(b, out[float64](b, dlogits, false), in[float64](b, logits), labels, scale, rows, v, kind)
	} else {
		crossEntropyBackward(b, out[float32](b, dlogits, false), in[float32](b, logits), labels, scale, rows, v, kind)
	}
}

func crossEntropyBackward[S real](b *Backend, dlogits, logits []S, labels []int32, scale []float64, rows, v int, kind kernel.CrossEntropyKind) {
	b.split(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row, d := logits[r*v:r*v+v], dlogits[r*v:r*v+v]
			if labels[r] < 0 {
				clear(d)
				continue
			}
			y, k := int(labels[r]), scale[r]
			if kind == kernel.Stablemax {
				sum := sumStable(row)
				for i, x := range row {
					s, ds := stable(float64(x))
					g := ds / sum
					if i == y {
						g -= ds / s
					}
					d[i] = S(k * g)
				}
				continue
			}
			top := math.Inf(-1)
			for _, x := range row {
				top = max(top, float64(x))
			}
			sum := sumExp(row, top)
			for i, x := range row {
				g := math.Exp(float64(x)-top) / sum
				if i == y {
					g--
				}
				d[i] = S(k * g)
			}
		}
	})
}
