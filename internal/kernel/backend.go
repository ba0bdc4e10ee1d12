// Package kernel says what a graph op may ask of the machine: the Backend
// interface, typed buffers, and the shapes that go with them. kernel/ref is
// the plain Go reference; kernel/simd the fast one; kernel/pick chooses.
//
// Shape letters, the same everywhere: B batch, T positions, D hidden size,
// N heads, K head dim, F MLP width, V vocabulary; M = B*T rows. Matrices are
// row-major.
//
// Types. An "activation" Buf is Float32, BFloat16 or Float64; all activations
// of one call have one type A. A "master" Buf (weights, gradients of weights,
// statistics) has type A.Master(). Arithmetic is in at least float32; results
// are rounded once when stored. Only kernel/ref takes Float64.
//
// Destinations come first. A destination is overwritten unless the comment
// says it accumulates, and may not overlap a source unless the comment allows
// it. A Backend allocates nothing per call after warm-up. Calls on one Backend
// must not overlap in time: one compute thread drives it, and parallelism
// lives inside the call.
//
// Determinism: same inputs, same backend, same thread count give the same
// bytes.
//
// Shapes that do not fit are bugs of the caller and panic with a constant
// that starts with "kernel: ".
package kernel

// MaxThreads is the most threads a backend takes.
const MaxThreads = 1 << 10

// Backend computes. All methods are safe for any size, including odd tails
// and one row.
type Backend interface {
	// Name is what the user sees and forces: ref, c, avx2, avx512, amx.
	Name() string
	// Threads is the number of threads a call may use.
	Threads() int
	// Close releases the worker threads.
	Close()

	// Linear: y[M,N] = x[M,K] · W[N,K]ᵀ. y is of x's type, or the master type
	// (logits). M = x.Len()/w.Cols.
	Linear(y, x Buf, w *Weight)
	// LinearDX: dx[M,K] (+)= dy[M,N] · W[N,K]. dx and dy are of one type.
	// With accumulate the product is added to dx.
	LinearDX(dx, dy Buf, w *Weight, accumulate bool)
	// LinearDW: dw[N,K] (+)= dy[M,N]ᵀ · x[M,K]. dw is master.
	LinearDW(dw, dy, x Buf, n, k int, accumulate bool)

	// Embed: see EmbedArgs.
	Embed(y Buf, a EmbedArgs)
	// EmbedBackward accumulates dTable and dPos and overwrites dPuzzle (each
	// may be absent) from dy[B,Prefix+T,D]. With accumulate false dTable and
	// dPos are overwritten too.
	EmbedBackward(dTable, dPuzzle, dPos, dy Buf, a EmbedArgs, accumulate bool)

	// Attention: softmax(q kᵀ/√K) v per head, with rotary positions applied
	// to q and k where Cos is present. o[B,T,N*K]; qkv[B,T,3*N*K] holds per
	// token q, k, v, each [N,K]; lse[B,N,T] master receives the log-sum-exp of
	// each row of scores and may be absent. With s.Queries only the first
	// positions ask: o is [B,Queries,N*K] and lse [B,N,Queries].
	Attention(o, lse, qkv Buf, s AttentionShape)
	// AttentionBackward: dqkv (laid out as qkv) from do, o, qkv, lse, all of
	// them whole: s.Queries is 0.
	AttentionBackward(dqkv, do, o, qkv, lse Buf, s AttentionShape)

	// AttentionCached: causal attention of s.T new positions, past to
	// past+T-1, over themselves and the past ones in the caches, for one
	// sequence (s.B is 1): o[T, N*K] from qkv[T, 3*N*K]. keys and values
	// [N, ctx, K] are activations and hold, per head, the keys (rotated) and
	// values of the positions before; the call adds those of the new ones. Cos
	// and Sin, where present, are [ctx, K/2]. s.Causal and s.Queries do not
	// count.
	AttentionCached(o, qkv, keys, values Buf, past int, s AttentionShape)

	// QKNorm: qkv[B*T, 3*N*K] as Attention takes it to y of the same layout,
	// with each head x of q and of k normed, gain ⊙ x·r with r =
	// 1/√(mean(x²)+eps), gain gq or gk [K] master, and v copied. rstd[B*T, 2*N]
	// master receives r, heads of q first. Both gains may be absent: 1. y may
	// be qkv. Of s only the sizes count.
	QKNorm(y, rstd, qkv, gq, gk Buf, s AttentionShape, eps float64)
	// QKNormBackward: dqkv from dy, and dgq, dgk (+)= Σ dy ⊙ x·r over all heads
	// of q, of k (they accumulate, and may be absent). dqkv may be the memory
	// of dy.
	QKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk Buf, s AttentionShape)

	// ResidualNorm: y = gain ⊙ s·r with s = alpha*x + z, r = 1/√(mean(s²)+eps)
	// per row of D. z may be absent (plain RMSNorm with alpha 1); gain [D]
	// master may be absent. rstd[rows] master receives r.
	ResidualNorm(y, rstd, x, z, gain Buf, alpha, eps float64, d int)
	// ResidualNormBackward. With n = s·r and g = dy ⊙ gain:
	//   ds = r·(g − n·mean(g ⊙ n)),  dx = alpha*ds,  dz = ds,
	//   dgain[D] (+)= Σ_rows dy ⊙ n  (accumulates).
	// dz and dgain may be absent. Without gain n is read from y, and x and z
	// may be absent; with gain s is recomputed from x and z and y may be
	// absent. dx may be the same memory as dy; so may dz if dx is not.
	ResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain Buf, alpha float64, d int)

	// SwiGLU: y[M,F] = silu(gu[:, :F]) ⊙ gu[:, F:2F], silu(u) = u/(1+e^-u).
	SwiGLU(y, gu Buf, f int)
	// SwiGLUBackward: dgu[M,2F] from dy[M,F]. dgu may be the memory of gu.
	SwiGLUBackward(dgu, dy, gu Buf, f int)

	// Activate: y = f(x), element by element, f by kind. y may be x.
	Activate(y, x Buf, kind Activation)
	// ActivateBackward: dx = dy·f'(x). dx may be the memory of x or of dy.
	ActivateBackward(dx, dy, x Buf, kind Activation)

	// CrossEntropy: loss[r] = -log p(labels[r]) in float64 for each row r of
	// logits[rows,V] (master type), 0 where labels[r] < 0; pred[r] = first
	// arg-max. p is softmax or stablemax (Eq. in CrossEntropyKind).
	CrossEntropy(loss []float64, pred []int32, logits Buf, labels []int32, v int, kind CrossEntropyKind)
	// CrossEntropyBackward: dlogits[r,:] = scale[r] · d loss[r]/d logits[r,:],
	// computed in float64, or in float32 where dlogits is bf16; 0 where
	// labels[r] < 0. dlogits is an activation.
	CrossEntropyBackward(dlogits, logits Buf, labels []int32, scale []float64, v int, kind CrossEntropyKind)

	// Add: dst = a + b (+ c where present). dst may be a, b or c.
	Add(dst, a, b, c Buf)
	// Convert: dst = src with another element type (or the same: a copy).
	Convert(dst, src Buf)

	// AdamATan2: one pass over a weight, its gradient and both moments
	// (all Float32 or all Float64), architectures.md G.5:
	//   w *= 1-lr*wd; m = b1*m+(1-b1)*g; v = b2*v+(1-b2)*g²;
	//   w -= lr/(1-b1^t) * atan2(m, √v/√(1-b2^t)).
	// With h.Average, it follows the new weights as Lerp would in a call of its
	// own, bit for bit. h.GradScale and h.Eps are not used.
	AdamATan2(w, g, m, v Buf, h AdamHyper)
	// AdamW: the same pass for Adam with decoupled weight decay (Loshchilov and
	// Hutter 2019, algorithm 2 without its schedule, as PyTorch has it), with
	// s = h.GradScale:
	//   w *= 1-lr*wd; m = b1*m+(1-b1)*s*g; v = b2*v+(1-b2)*(s*g)²;
	//   w -= lr/(1-b1^t) * m/(√(v/(1-b2^t)) + eps).
	AdamW(w, g, m, v Buf, h AdamHyper)
	// SignSGD: w = w*(1-lr*wd) - lr*sign(g), sign(0) = 0.
	SignSGD(w, g Buf, lr, wd float64)
	// Lerp: dst = rate*dst + (1-rate)*src (EMA of weights).
	Lerp(dst, src Buf, rate float64)
	// SumSquares returns Σ x² in float64; it is not finite exactly when some
	// element is not (or the sum overflows float64).
	SumSquares(x Buf) float64
}

// Weight is a matrix [Rows, Cols] = [out, in] that Linear multiplies with.
// The owner raises Version at every write to Data, so that a backend knows
// when its packed copies are stale.
type Weight struct {
	Data       Buf // master
	Rows, Cols int
	Version    uint64
	// Packed is a backend's private cache, valid for PackedBy.
	Packed   any
	PackedBy Backend
}

// EmbedArgs: y[b,p,:] for p < Prefix is Scale·(puzzle slot p of row b
// [+ Pos[p]]), and for p = Prefix+t it is Scale·(Table[IDs[b*T+t]] [+ Pos[p]]).
// Puzzle is [B, PuzzleDim] master, PuzzleDim ≤ Prefix*D, padded with zeros.
// Pos [Prefix+T, D] master is absent without learned positions.
type EmbedArgs struct {
	Table, Puzzle, Pos  Buf
	IDs                 []int32
	Batch, T, Prefix, D int
	Vocab, PuzzleDim    int
	Scale               float64
}

// AttentionShape: B batch, T positions, N heads of K. Cos and Sin [T, K/2]
// master rotate element i with i+K/2 (half-split):
//
//	q'[i] = q[i]cos[i] − q[i+K/2]sin[i],  q'[i+K/2] = q[i+K/2]cos[i] + q[i]sin[i].
//
// Absent Cos means no rotation. Queries is how many leading positions of each
// row of the batch ask (all of them answer); 0 means all T.
type AttentionShape struct {
	B, T, N, K int
	Queries    int
	Causal     bool
	Cos, Sin   Buf
}

// Asking returns the number of positions per row of the batch that ask.
func (s AttentionShape) Asking() int {
	if s.Queries > 0 {
		return s.Queries
	}
	return s.T
}

// Activation is an activation function of one argument.
type Activation uint8

const (
	// GELU is the form with tanh (Hendrycks and Gimpel 2016, section 2), as in
	// GPT-2: ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
	GELU Activation = iota
	// GELUErf is the exact one, x·Φ(x) = ½x(1 + erf(x/√2)).
	GELUErf
	// ReLUSquared is max(x, 0)² (So et al. 2021, section 3).
	ReLUSquared
)

// CrossEntropyKind is how logits become probabilities.
type CrossEntropyKind uint8

const (
	// Softmax: p = e^x/Σe^x.
	Softmax CrossEntropyKind = iota
	// Stablemax: p = s(x)/Σs(x), s(x) = x+1 for x ≥ 0, 1/(1−x+1e-30) below
	// (architectures.md G.3; the 1e-30 is the reference code's).
	Stablemax
)

// AdamHyper holds one step's numbers for AdamATan2 and AdamW.
type AdamHyper struct {
	LR, Beta1, Beta2, WeightDecay float64
	Step                          int // counts from 1
	// Eps keeps AdamW's quotient finite where second moments vanish; with 0 a
	// weight that never had a gradient becomes NaN.
	Eps float64
	// GradScale is what AdamW multiplies every gradient with before use, the
	// factor of gradient clipping: 1 without clipping. 0 is no default but a
	// factor as any other, under which all gradients count as zero.
	GradScale float64
	// Average, where present, is the moving average of w (of its length and
	// type): Average = AverageRate*Average + (1-AverageRate)*w, w after the
	// update.
	Average     Buf
	AverageRate float64
}
