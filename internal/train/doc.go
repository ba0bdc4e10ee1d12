// Package train is the step loop that both trainers share: it numbers steps,
// evaluates, saves, resumes, stops on signals and on broken numbers, and keeps
// the run's folder. It knows neither models nor data; a model plugs in as a
// Trainer.
//
// A command uses it like this:
//
//	ctx, stop := train.OnInterrupt(ctx, func(os.Signal) { ... })
//	defer stop()
//	run, err := train.Open(train.Folder{Dir: dir, How: train.Resume, Now: time.Now})
//	if err != nil { ... }                 // exists already, locked, damaged
//	defer run.Close()
//	if ck := run.Checkpoint(); ck != nil { // resuming: ck.Meta().Config has the settings
//		...
//	}
//	trainer := ...                         // build model, data and optimizers
//	err = run.Train(ctx, train.Options{Steps: 1000, EvalEvery: 100, ...}, trainer)
//
// A Trainer looks like this:
//
//	type trainer struct {
//		backend kernel.Backend
//		params  []optim.Param
//		adam    optim.AdamATan2
//		rate    optim.Cosine
//		ema     *optim.EMA
//		loader  *loader
//		explore *rng.Stream
//	}
//
//	func (t *trainer) Step(_ context.Context, step int) (train.Result, error) {
//		batch := t.loader.Next()
//		loss := t.forwardBackward(batch)              // fills params[i].G, from zero
//		norm, err := optim.GradNorm(t.backend, t.params) // *optim.NonFinite names the tensor
//		if err != nil {
//			return train.Result{}, err
//		}
//		t.adam.Step(t.backend, t.params, t.rate.At(step))
//		t.ema.Update(t.backend, t.params)
//		return train.Result{Loss: loss, Tokens: batch.Tokens(), Metrics: runlog.Metrics{"loss": loss, "grad_norm": norm}}, nil
//	}
//
//	func (t *trainer) State(s *checkpoint.Set) {
//		for i, p := range t.params {
//			s.Tensor(checkpoint.Weights, p.Name, t.shape(i), p.W)
//		}
//		train.AdamState(s, t.params, t.shape, t.ema)
//		s.Value(checkpoint.Optimizer, "steps", &t.adam.Steps)
//		s.Value(checkpoint.Carry, "loader", &t.loader.Position)
//		s.Value(checkpoint.Streams, "explore", t.explore)
//	}
//
//	func (t *trainer) Restored(fresh ...string) error { return t.loader.Seek(t.loader.Position) }
//	func (t *trainer) Check() error                   { return optim.FiniteState(t.backend, t.params, t.ema) }
//
// Seams. Gradient accumulation lives in Step: several forward and backward
// passes before one GradNorm, with the gradients zeroed before the first only.
// Clipping scales the gradients between GradNorm, which returns the number to
// compare with, and the optimizer's Step. Neither needs a change here.
//
// A run that stopped and went on leaves the metrics of one that never stopped,
// with one exception: where Options.MaxTime (--minutes) ends a session, it is
// evaluated, and that adds an evaluation line at the step where it stopped.
//
// Files of a run's folder: checkpoints/ (see package checkpoint),
// metrics.jsonl, sessions.jsonl (see package runlog), lock while a process
// writes, and what the command adds through Options.Files.
package train
