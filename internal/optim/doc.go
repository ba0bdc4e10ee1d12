// Package optim holds the optimizers of both trainers, learning-rate
// schedules and the moving average of weights. It works on views of
// kernel.Buf and leaves the arithmetic to a kernel.Backend; it knows neither
// graphs nor models.
//
// The order inside one step, as in the reference: forward, backward,
// SparseSignSGD on the task embeddings, AdamATan2 on everything else, EMA. The
// language models: GradNorm, Clip, AdamW, EMA.
package optim
