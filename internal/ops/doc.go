// Package ops holds the graph ops, one per fused kernel, each with its forward
// and its backward side by side.
//
// Shape letters: B batch, T positions, D hidden, N heads, K head dim, F MLP
// width, V vocabulary, M = B*T rows. Activations are matrices [M, ·]. The
// gradient of x is called dx. Gradients of parameters accumulate in place
// (graph.GradBuf); gradients of activations are overwritten, and Gorgonia adds
// them where a value is read twice.
package ops
