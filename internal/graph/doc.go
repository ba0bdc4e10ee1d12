// Package graph is the glue to Gorgonia: parameters, ops that own their
// output, a memory planner, and the Runner that executes a built graph.
//
// Gorgonia holds the expression graph, differentiates it symbolically and
// schedules it; the arithmetic is done by a kernel.Backend. A graph is made in
// four steps:
//
//	b := graph.NewBuilder(backend, kernel.Float32)
//	x := b.Input("x", kernel.Float32, rows, cols) // leaf the caller fills
//	y := ops.Linear(b, x, weight)                 // packages ops, deeploop, hrm
//	b.Gradients(cost, params)                     // optional: backward ops
//	r, err := b.Build(y)                          // plan memory, compile
//	r.Run()                                       // then read r.Buf(y)
//
// Every activation is a matrix [rows, cols]; a scalar is a node without
// shape. Gradients of parameters do not flow through the graph: the backward
// op of a parameter adds into Param.Grad and returns a token (compute.md,
// rule 4).
package graph
