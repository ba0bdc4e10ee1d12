package kernel

// Check functions state which shapes and types fit each method of Backend.
// Every backend calls them first, so that a caller's bug panics with the same
// constant everywhere.

const (
	badType       = "kernel: element types do not fit together"
	badLinear     = "kernel: Linear shapes do not fit"
	badEmbed      = "kernel: Embed shapes do not fit"
	badID         = "kernel: an id is outside the vocabulary"
	badAttention  = "kernel: Attention shapes do not fit"
	badOddRotary  = "kernel: rotary positions need an even head size"
	badCached     = "kernel: AttentionCached shapes do not fit"
	badContext    = "kernel: more positions than the cache of keys and values holds"
	badQKNorm     = "kernel: QKNorm shapes do not fit"
	badNorm       = "kernel: ResidualNorm shapes do not fit"
	badSwiGLU     = "kernel: SwiGLU shapes do not fit"
	badActivation = "kernel: an unknown activation function"
	badLoss       = "kernel: CrossEntropy shapes do not fit"
	badLabel      = "kernel: a label is outside the vocabulary"
	badLengths    = "kernel: buffers differ in length"
	badStep       = "kernel: steps of Adam count from 1"
)

func mustFit(ok bool, msg string) {
	if !ok {
		panic(msg)
	}
}

// isMaster reports that every present buffer has the master type of t.
func isMaster(t DType, bufs ...Buf) bool {
	for _, b := range bufs {
		if !b.Absent() && b.t != t.Master() {
			return false
		}
	}
	return true
}

// same reports that every present buffer is of type t.
func same(t DType, bufs ...Buf) bool {
	for _, b := range bufs {
		if !b.Absent() && b.t != t {
			return false
		}
	}
	return true
}

// orLen reports that b is absent or holds n elements.
func orLen(b Buf, n int) bool { return b.Absent() || b.n == n }

// CheckLinear checks Linear(y, x, w) and returns M.
func CheckLinear(y, x Buf, w *Weight) int {
	mustFit(w.Rows > 0 && w.Cols > 0 && w.Data.n == w.Rows*w.Cols && x.n%w.Cols == 0, badLinear)
	m := x.n / w.Cols
	mustFit(y.n == m*w.Rows, badLinear)
	mustFit(isMaster(x.t, w.Data) && (y.t == x.t || y.t == x.t.Master()), badType)
	return m
}

// CheckLinearDX checks LinearDX(dx, dy, w) and returns M.
func CheckLinearDX(dx, dy Buf, w *Weight) int {
	mustFit(w.Rows > 0 && w.Cols > 0 && w.Data.n == w.Rows*w.Cols && dx.n%w.Cols == 0, badLinear)
	m := dx.n / w.Cols
	mustFit(dy.n == m*w.Rows, badLinear)
	mustFit(isMaster(dx.t, w.Data) && dy.t == dx.t, badType)
	return m
}

// CheckLinearDW checks LinearDW(dw, dy, x, n, k) and returns M.
func CheckLinearDW(dw, dy, x Buf, n, k int) int {
	mustFit(n > 0 && k > 0 && dw.n == n*k && x.n%k == 0, badLinear)
	m := x.n / k
	mustFit(dy.n == m*n, badLinear)
	mustFit(isMaster(x.t, dw) && dy.t == x.t, badType)
	return m
}

// CheckEmbed checks Embed(y, a), ids included.
func CheckEmbed(y Buf, a EmbedArgs) {
	checkEmbedShape(y, a)
	mustFit(a.Table.n == a.Vocab*a.D && orLen(a.Pos, (a.Prefix+a.T)*a.D) && orLen(a.Puzzle, a.Batch*a.PuzzleDim), badEmbed)
	mustFit(isMaster(y.t, a.Table, a.Pos, a.Puzzle), badType)
}

// CheckEmbedBackward checks EmbedBackward(dTable, dPuzzle, dPos, dy, a).
func CheckEmbedBackward(dTable, dPuzzle, dPos, dy Buf, a EmbedArgs) {
	checkEmbedShape(dy, a)
	mustFit(orLen(dTable, a.Vocab*a.D) && orLen(dPos, (a.Prefix+a.T)*a.D) && orLen(dPuzzle, a.Batch*a.PuzzleDim), badEmbed)
	mustFit(isMaster(dy.t, dTable, dPos, dPuzzle), badType)
}

func checkEmbedShape(y Buf, a EmbedArgs) {
	mustFit(a.D > 0 && a.Prefix >= 0 && a.PuzzleDim >= 0 && a.PuzzleDim <= a.Prefix*a.D &&
		len(a.IDs) == a.Batch*a.T && y.n == a.Batch*(a.Prefix+a.T)*a.D, badEmbed)
	for _, id := range a.IDs {
		mustFit(id >= 0 && int(id) < a.Vocab, badID)
	}
}

// CheckAttention checks the buffers of a forward call.
func CheckAttention(o, lse, qkv Buf, s AttentionShape) {
	mustFit(s.B >= 0 && s.T > 0 && s.N > 0 && s.K > 0 && s.Queries >= 0 && s.Queries <= s.T, badAttention)
	asking := s.Asking()
	mustFit(o.n == s.B*asking*s.N*s.K && qkv.n == 3*s.B*s.T*s.N*s.K && orLen(lse, s.B*s.N*asking), badAttention)
	mustFit(same(qkv.t, o) && isMaster(qkv.t, lse, s.Cos, s.Sin), badType)
	if !s.Cos.Absent() {
		mustFit(s.K%2 == 0, badOddRotary)
		mustFit(s.Cos.n == s.T*(s.K/2) && s.Sin.n == s.Cos.n, badAttention)
	}
}

// CheckAttentionBackward checks the buffers of a backward call.
func CheckAttentionBackward(dqkv, do, o, qkv, lse Buf, s AttentionShape) {
	CheckAttention(o, lse, qkv, s)
	mustFit(s.Queries == 0 && !lse.Absent(), badAttention)
	mustFit(dqkv.n == qkv.n && do.n == o.n, badAttention)
	mustFit(same(qkv.t, dqkv, do), badType)
}

// CheckAttentionCached checks the buffers of a call.
func CheckAttentionCached(o, qkv, keys, values Buf, past int, s AttentionShape) {
	mustFit(s.B == 1 && s.T > 0 && s.N > 0 && s.K > 0 && past >= 0 && keys.n%(s.N*s.K) == 0 && values.n == keys.n, badCached)
	ctx := keys.n / (s.N * s.K)
	mustFit(past+s.T <= ctx, badContext)
	mustFit(o.n == s.T*s.N*s.K && qkv.n == 3*o.n, badCached)
	mustFit(same(qkv.t, o, keys, values) && isMaster(qkv.t, s.Cos, s.Sin), badType)
	if !s.Cos.Absent() {
		mustFit(s.K%2 == 0, badOddRotary)
		mustFit(s.Cos.n == ctx*(s.K/2) && s.Sin.n == s.Cos.n, badCached)
	}
}

// CheckQKNorm checks the buffers of a forward call.
func CheckQKNorm(y, rstd, qkv, gq, gk Buf, s AttentionShape) {
	mustFit(s.B >= 0 && s.T > 0 && s.N > 0 && s.K > 0 && qkv.n == 3*s.B*s.T*s.N*s.K, badQKNorm)
	mustFit(y.n == qkv.n && rstd.n == 2*s.B*s.T*s.N && orLen(gq, s.K) && orLen(gk, s.K), badQKNorm)
	mustFit(same(qkv.t, y) && isMaster(qkv.t, rstd, gq, gk), badType)
}

// CheckQKNormBackward checks the buffers of a backward call.
func CheckQKNormBackward(dqkv, dgq, dgk, dy, qkv, rstd, gq, gk Buf, s AttentionShape) {
	CheckQKNorm(dy, rstd, qkv, gq, gk, s)
	mustFit(dqkv.n == qkv.n && orLen(dgq, s.K) && orLen(dgk, s.K), badQKNorm)
	mustFit(same(qkv.t, dqkv) && isMaster(qkv.t, dgq, dgk), badType)
}

// CheckResidualNorm checks a forward call and returns the number of rows.
func CheckResidualNorm(y, rstd, x, z, gain Buf, d int) int {
	mustFit(d > 0 && x.n%d == 0, badNorm)
	mustFit(y.n == x.n && rstd.n == x.n/d && orLen(z, x.n) && orLen(gain, d), badNorm)
	mustFit(same(x.t, y, z) && isMaster(x.t, rstd, gain), badType)
	return x.n / d
}

// CheckResidualNormBackward checks a backward call and returns the number of
// rows.
func CheckResidualNormBackward(dx, dz, dgain, dy, y, rstd, x, z, gain Buf, d int) int {
	mustFit(d > 0 && dy.n%d == 0, badNorm)
	mustFit(dx.n == dy.n && rstd.n == dy.n/d && orLen(dz, dy.n) && orLen(z, dy.n) && orLen(gain, d) && orLen(dgain, d), badNorm)
	if gain.Absent() {
		mustFit(y.n == dy.n, badNorm)
	} else {
		mustFit(x.n == dy.n, badNorm)
	}
	mustFit(same(dy.t, dx, dz, y, x, z) && isMaster(dy.t, dgain, rstd, gain), badType)
	return dy.n / d
}

// CheckSwiGLU checks one [M,F] buffer against one or two [M,2F] buffers and
// returns M.
func CheckSwiGLU(y Buf, f int, gus ...Buf) int {
	mustFit(f > 0 && y.n%f == 0, badSwiGLU)
	for _, gu := range gus {
		mustFit(gu.n == 2*y.n, badSwiGLU)
		mustFit(gu.t == y.t, badType)
	}
	return y.n / f
}

// CheckActivate checks Activate and ActivateBackward: all buffers of one length
// and type.
func CheckActivate(kind Activation, dst Buf, bufs ...Buf) {
	mustFit(kind <= ReLUSquared, badActivation)
	mustFit(same(dst.t, bufs...), badType)
	for _, b := range bufs {
		mustFit(b.n == dst.n, badLengths)
	}
}

// CheckCrossEntropy checks logits, labels and the outputs per row (loss and
// pred, or scale alone), and returns the number of rows.
func CheckCrossEntropy(logits Buf, labels []int32, v int, perRow ...int) int {
	mustFit(v > 0 && logits.n == len(labels)*v, badLoss)
	for _, n := range perRow {
		mustFit(n == len(labels), badLoss)
	}
	mustFit(isMaster(logits.t, logits), badType)
	for _, l := range labels {
		mustFit(int(l) < v, badLabel)
	}
	return len(labels)
}

// CheckCrossEntropyBackward is CheckCrossEntropy for the backward call.
func CheckCrossEntropyBackward(dlogits, logits Buf, labels []int32, v, scales int) int {
	mustFit(dlogits.n == logits.n, badLoss)
	mustFit(isMaster(dlogits.t, logits), badType)
	return CheckCrossEntropy(logits, labels, v, scales)
}

// CheckSame checks that all present buffers have the length and type of the
// first.
func CheckSame(dst Buf, bufs ...Buf) {
	mustFit(same(dst.t, bufs...), badType)
	for _, b := range bufs {
		mustFit(orLen(b, dst.n), badLengths)
	}
}

// CheckAdam checks one optimizer call: all buffers master, of one length.
func CheckAdam(w, g, m, v Buf, h AdamHyper) {
	mustFit(w.n == g.n && w.n == m.n && w.n == v.n && orLen(h.Average, w.n), badLengths)
	mustFit(w.t != BFloat16 && same(w.t, g, m, v, h.Average), badType)
	mustFit(h.Step > 0, badStep)
}

// CheckUpdate checks SignSGD and Lerp: both buffers master, of one length.
func CheckUpdate(dst, src Buf) {
	mustFit(dst.n == src.n, badLengths)
	mustFit(dst.t != BFloat16 && same(dst.t, src), badType)
}

// CheckConvert checks Convert.
func CheckConvert(dst, src Buf) { mustFit(dst.n == src.n, badLengths) }
