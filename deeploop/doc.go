// Package deeploop is what the looped models share: the residual rule
// (alpha, beta, p, N), blocks of attention and MLP with their placement of
// norms, stacks of blocks that are called several times, and the schedule of
// calls with its gradient span. Source: the DeepLoop paper, arXiv 2607.13491,
// as laid out in architectures.md section A.
//
// Glossary. A *block* is an attention and an MLP sublayer. A *stack* is a list
// of blocks run one after the other; HRM has two, H and L. A *call* is one run
// of a stack, a *visit* one execution of a sublayer. A *cycle* is one H call
// with the L calls before it; a *segment* is one pass of deep supervision: all
// cycles, the losses and the carry to the next segment. *Input injection* is
// what is added to a state before a call. A *carry* holds the states between
// segments; a row *halts* when it leaves the batch.
package deeploop
