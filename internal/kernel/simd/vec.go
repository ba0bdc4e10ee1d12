//go:build cgo

package simd

/*
#cgo noescape dl_vec_embed
#cgo nocallback dl_vec_embed
#cgo noescape dl_vec_embed_back
#cgo nocallback dl_vec_embed_back
#cgo noescape dl_vec_attn
#cgo nocallback dl_vec_attn
#cgo noescape dl_vec_attn_back
#cgo nocallback dl_vec_attn_back
#cgo noescape dl_vec_attn_cached
#cgo nocallback dl_vec_attn_cached
#cgo noescape dl_vec_qknorm
#cgo nocallback dl_vec_qknorm
#cgo noescape dl_vec_qknorm_back
#cgo nocallback dl_vec_qknorm_back
#cgo noescape dl_vec_norm
#cgo nocallback dl_vec_norm
#cgo noescape dl_vec_norm_back
#cgo nocallback dl_vec_norm_back
#cgo noescape dl_vec_swiglu
#cgo nocallback dl_vec_swiglu
#cgo noescape dl_vec_swiglu_back
#cgo nocallback dl_vec_swiglu_back
#cgo noescape dl_vec_activate
#cgo nocallback dl_vec_activate
#cgo noescape dl_vec_activate_back
#cgo nocallback dl_vec_activate_back
#cgo noescape dl_vec_loss
#cgo nocallback dl_vec_loss
#cgo noescape dl_vec_loss_back
#cgo nocallback dl_vec_loss_back
#cgo noescape dl_vec_add
#cgo nocallback dl_vec_add
#cgo noescape dl_vec_convert
#cgo nocallback dl_vec_convert
#cgo noescape dl_vec_adam
#cgo nocallback dl_vec_adam
#cgo noescape dl_vec_adamw
#cgo nocallback dl_vec_adamw
#cgo noescape dl_vec_signsgd
#cgo nocallback dl_vec_signsgd
#cgo noescape dl_vec_lerp
#cgo nocallback dl_vec_lerp
#cgo noescape dl_vec_sumsq
#cgo nocallback dl_vec_sumsq
#include "vec_entry.h"
*/
import "C"

import (
	"math"
	"unsafe"

	"deeploop/internal/kernel"
)

func size(n int) C.int64_t { return C.int64_t(n) }

func ints(s []int32) unsafe.Pointer      { return unsafe.Pointer(unsafe.SliceData(s)) }
func doubles(s []float64) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// Embed implements kernel.Backend.
func (b *Backend) Embed(y kernel.Buf, a kernel.EmbedArgs) {
	kernel.CheckEmbed(y, a)
	C.dl_vec_embed(b.pool, b.vec, ctype(y.Type()), y.Ptr(), a.Table.Ptr(), a.Puzzle.Ptr(), a.Pos.Ptr(), ints(a.IDs),
		size(a.Batch), size(a.T), size(a.Prefix), size(a.D), size(a.Vocab), size(a.PuzzleDim), C.float(a.Scale))
}

// EmbedBackward implements kernel.Backend.
func (b *Backend) EmbedBackward(dTable, dPuzzle, dPos, dy kernel.Buf, a kernel.EmbedArgs, accumulate bool) {
	kernel.CheckEmbedBackward(dTable, dPuzzle, dPos, dy, a)
	C.dl_vec_embed_back(b.pool, b.vec, ctype(dy.Type()), dTable.Ptr(), dPuzzle.Ptr(), dPos.Ptr(), dy.Ptr(), ints(a.IDs),
		size(a.Batch), size(a.T), size(a.Prefix), size(a.D), size(a.Vocab), size(a.PuzzleDim), C.float(a.Scale), cbool(accumulate))
}

// Attention implements kernel.Backend.
func (b *Backend) Attention(o, lse, qkv kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckAttention(o, lse, qkv, s)
	t := ctype(qkv.Type())
	C.dl_vec_attn(b.pool, b.vec, t, b.engine(t), o.Ptr(), lse.Ptr(), qkv.Ptr(), s.Cos.Ptr(), s.Sin.Ptr(),
		C.int(s.B), C.int(s.T), C.int(s.N), C.int(s.K), cbool(s.Causal), C.int(s.Asking()))
}

// AttentionBackward implements kernel.Backend.
func (b *Backend) AttentionBackward(dqkv, do, o, qkv, lse kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckAttentionBackward(dqkv, do, o, qkv, lse, s)
	t := ctype(qkv.Type())
	C.dl_vec_attn_back(b.pool, b.vec, t, b.engine(t), dqkv.Ptr(), do.Ptr(), o.Ptr(), qkv.Ptr(), lse.Ptr(), s.Cos.Ptr(), s.Sin.Ptr(),
		C.int(s.B), C.int(s.T), C.int(s.N), C.int(s.K), cbool(s.Causal))
}

// AttentionCached implements kernel.Backend. A sequence's first piece, which
// sees nothing but itself, goes the way of Attention.
func (b *Backend) AttentionCached(o, qkv, keys, values kernel.Buf, past int, s kernel.AttentionShape) {
	kernel.CheckAttentionCached(o, qkv, keys, values, past, s)
	to, ctx := o.Ptr(), keys.Len()/(s.N*s.K)
	if past == 0 && s.T > 1 {
		first := s
		first.Causal, first.Queries = true, 0
		if !s.Cos.Absent() {
			first.Cos, first.Sin = s.Cos.Slice(0, s.T*(s.K/2)), s.Sin.Slice(0, s.T*(s.K/2))
		}
		b.Attention(o, kernel.Buf{}, qkv, first)
		to = nil
	}
	C.dl_vec_attn_cached(b.pool, b.vec, ctype(qkv.Type()), to, qkv.Ptr(), keys.Ptr(), values.Ptr(), s.Cos.Ptr(), s.Sin.Ptr(),
		size(past), size(s.T), size(s.N), size(s.K), size(ctx))
}

// QKNorm implements kernel.Backend.
func (b *Backend) QKNorm(y, rstd, qkv, gq, gk kernel.Buf, s kernel.AttentionShape, eps float64) {
	kernel.CheckQKNorm(y, rstd, qkv, gq, gk, s)
	C.dl_vec_qknorm(b.pool, b.vec, ctype(qkv.Type()), y.Ptr(), rstd.Ptr(), qkv.Ptr(), gq.Ptr(), gk.Ptr(), C.float(eps),
		size(s.B*s.T), size(s.N), size(s.K))
}

// QKNormBackward implements kernel.Backend.
func (b *Backend) QKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk kernel.Buf, s kernel.AttentionShape) {
	kernel.CheckQKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk, s)
	C.dl_vec_qknorm_back(b.pool, b.vec, ctype(qkv.Type()), dqkv.Ptr(), dgq.Ptr(), dgk.Ptr(), dy.Ptr(), qkv.Ptr(), rstd.Ptr(), gq.Ptr(), gk.Ptr(),
		size(s.B*s.T), size(s.N), size(s.K))
}

// ResidualNorm implements kernel.Backend.
func (b *Backend) ResidualNorm(y, rstd, x, z, gain kernel.Buf, alpha, eps float64, d int) {
	rows := kernel.CheckResidualNorm(y, rstd, x, z, gain, d)
	C.dl_vec_norm(b.pool, b.vec, ctype(x.Type()), y.Ptr(), rstd.Ptr(), x.Ptr(), z.Ptr(), gain.Ptr(), C.float(alpha), C.float(eps), size(rows), size(d))
}

// ResidualNormBackward implements kernel.Backend.
func (b *Backend) ResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain kernel.Buf, alpha float64, d int) {
	rows := kernel.CheckResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain, d)
	C.dl_vec_norm_back(b.pool, b.vec, ctype(dy.Type()), dx.Ptr(), dz.Ptr(), dgain.Ptr(), dy.Ptr(), y.Ptr(), rstd.Ptr(), x.Ptr(), z.Ptr(), gain.Ptr(),
		C.float(alpha), size(rows), size(d))
}

// SwiGLU implements kernel.Backend.
func (b *Backend) SwiGLU(y, gu kernel.Buf, f int) {
	m := kernel.CheckSwiGLU(y, f, gu)
	C.dl_vec_swiglu(b.pool, b.vec, ctype(y.Type()), y.Ptr(), gu.Ptr(), size(m), size(f))
}

// SwiGLUBackward implements kernel.Backend.
func (b *Backend) SwiGLUBackward(dgu, dy, gu kernel.Buf, f int) {
	m := kernel.CheckSwiGLU(dy, f, gu, dgu)
	C.dl_vec_swiglu_back(b.pool, b.vec, ctype(dy.Type()), dgu.Ptr(), dy.Ptr(), gu.Ptr(), size(m), size(f))
}

// Activate implements kernel.Backend.
func (b *Backend) Activate(y, x kernel.Buf, kind kernel.Activation) {
	kernel.CheckActivate(kind, y, x)
	C.dl_vec_activate(b.pool, b.vec, ctype(y.Type()), y.Ptr(), x.Ptr(), size(y.Len()), C.int(kind))
}

// ActivateBackward implements kernel.Backend.
func (b *Backend) ActivateBackward(dx, dy, x kernel.Buf, kind kernel.Activation) {
	kernel.CheckActivate(kind, dx, dy, x)
	C.dl_vec_activate_back(b.pool, b.vec, ctype(dx.Type()), dx.Ptr(), dy.Ptr(), x.Ptr(), size(dx.Len()), C.int(kind))
}

// CrossEntropy implements kernel.Backend.
func (b *Backend) CrossEntropy(loss []float64, pred []int32, logits kernel.Buf, labels []int32, v int, kind kernel.CrossEntropyKind) {
	rows := kernel.CheckCrossEntropy(logits, labels, v, len(loss), len(pred))
	ctype(logits.Type())
	C.dl_vec_loss(b.pool, b.vec, doubles(loss), ints(pred), logits.Ptr(), ints(labels), size(rows), size(v), cbool(kind == kernel.Stablemax))
}

// CrossEntropyBackward implements kernel.Backend.
func (b *Backend) CrossEntropyBackward(dlogits, logits kernel.Buf, labels []int32, scale []float64, v int, kind kernel.CrossEntropyKind) {
	rows := kernel.CheckCrossEntropyBackward(dlogits, logits, labels, v, len(scale))
	C.dl_vec_loss_back(b.pool, b.vec, ctype(dlogits.Type()), dlogits.Ptr(), logits.Ptr(), ints(labels), doubles(scale),
		size(rows), size(v), cbool(kind == kernel.Stablemax))
}

// Add implements kernel.Backend.
func (b *Backend) Add(dst, x, y, z kernel.Buf) {
	kernel.CheckSame(dst, x, y, z)
	C.dl_vec_add(b.pool, b.vec, ctype(dst.Type()), dst.Ptr(), x.Ptr(), y.Ptr(), z.Ptr(), size(dst.Len()))
}

// Convert implements kernel.Backend.
func (b *Backend) Convert(dst, src kernel.Buf) {
	kernel.CheckConvert(dst, src)
	if dst.Absent() {
		return
	}
	to, from := ctype(dst.Type()), ctype(src.Type())
	if to == from {
		copy(dst.Bytes(), src.Bytes())
		return
	}
	C.dl_vec_convert(b.pool, b.vec, to, dst.Ptr(), src.Ptr(), size(dst.Len()))
}

// AdamATan2 implements kernel.Backend.
func (b *Backend) AdamATan2(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	kernel.CheckAdam(w, g, m, v, h)
	ctype(w.Type())
	decay, step, root := adamFactors(h)
	C.dl_vec_adam(b.pool, b.vec, w.Ptr(), g.Ptr(), m.Ptr(), v.Ptr(), h.Average.Ptr(), size(w.Len()),
		decay, step, root, C.float(1-h.Beta1), C.float(1-h.Beta2), C.float(h.AverageRate), C.float(1-h.AverageRate))
}

// AdamW implements kernel.Backend.
func (b *Backend) AdamW(w, g, m, v kernel.Buf, h kernel.AdamHyper) {
	kernel.CheckAdam(w, g, m, v, h)
	ctype(w.Type())
	decay, step, root := adamFactors(h)
	C.dl_vec_adamw(b.pool, b.vec, w.Ptr(), g.Ptr(), m.Ptr(), v.Ptr(), h.Average.Ptr(), size(w.Len()),
		decay, step, root, C.float(1-h.Beta1), C.float(1-h.Beta2), C.float(h.AverageRate), C.float(1-h.AverageRate), C.float(h.GradScale), C.float(h.Eps))
}

// adamFactors returns the factor of the weights, that of the quotient and that
// of the second moments' root.
func adamFactors(h kernel.AdamHyper) (decay, step, root C.float) {
	return C.float(1 - h.LR*h.WeightDecay), C.float(h.LR / (1 - math.Pow(h.Beta1, float64(h.Step)))),
		C.float(1 / math.Sqrt(1-math.Pow(h.Beta2, float64(h.Step))))
}

// SignSGD implements kernel.Backend.
func (b *Backend) SignSGD(w, g kernel.Buf, lr, wd float64) {
	kernel.CheckUpdate(w, g)
	ctype(w.Type())
	C.dl_vec_signsgd(b.pool, b.vec, w.Ptr(), g.Ptr(), size(w.Len()), C.float(lr), C.float(1-lr*wd))
}

// Lerp implements kernel.Backend.
func (b *Backend) Lerp(dst, src kernel.Buf, rate float64) {
	kernel.CheckUpdate(dst, src)
	ctype(dst.Type())
	C.dl_vec_lerp(b.pool, b.vec, dst.Ptr(), src.Ptr(), size(dst.Len()), C.float(rate), C.float(1-rate))
}

// SumSquares implements kernel.Backend.
func (b *Backend) SumSquares(x kernel.Buf) float64 {
	return float64(C.dl_vec_sumsq(b.pool, b.vec, ctype(x.Type()), x.Ptr(), size(x.Len())))
}
