// Package lm is the looped language model: a GPT whose K stored blocks run R
// times (architectures.md section A), its training, evaluation and decoding.
//
// From a command to the kernels: cmd/lm train -> Job.Step -> Learner.Step ->
// the graph that Model's methods build out of deeploop.Stack and internal/ops.
//
// Files: config.go and presets.go what can be set; model.go the equations;
// gradient.go and recompute.go the backward pass in one graph or round by
// round; learner.go one optimizer step; loader.go and job.go a whole training;
// forward.go evaluation at any loop count; decoder.go text one token at a time;
// kappa.go how well the rounds' gradients agree (A.4).
package lm
