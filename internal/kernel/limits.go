package kernel

// Limits is a Backend that can probe what the machine can do at best, with
// its own instructions and threads. Benchmarks and profiles divide by it. A
// shared machine changes within milliseconds, so probe right before and after
// what is compared, for about as long.
type Limits interface {
	// ProbeProducts does n rounds of products on every thread, with operands
	// that stay in registers or the nearest cache and the instructions that
	// products of activations of type t use. It returns how many
	// floating-point operations that was, of all threads together.
	ProbeProducts(t DType, n int) float64
	// ProbeCopy copies src to dst, Float32 of one length, on all threads, the
	// fastest way there is. Its traffic is counted as 8 bytes an element.
	ProbeCopy(dst, src Buf)
}
