// Package command is what the commands of hrm and lm have in common: the
// kernel flags, where datasets and runs lie, training from plan to summary,
// benchmarks, profiles, and the commands that need no model (plot, inspect).
// What differs is passed in: the program's name, its configuration, its data.
//
// Like the programs themselves it reads the environment and the clock, and
// chooses a kernel; package cli, below it, knows nothing of models.
package command

import "context"

// OrBackground returns ctx, or the background where a command was run without
// one.
func OrBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
