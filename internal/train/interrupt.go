package train

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"deeploop/internal/cli"
)

// OnInterrupt returns a context that is cancelled, after calling say, by the
// first Ctrl-C, SIGTERM or end of the terminal (unless nohup protects from it),
// or by the end of a parent that wants this process to end with it
// (cli.EndsWithParent). From then on signals have their usual effect, so a
// second one ends the process at once. Call stop when done.
func OnInterrupt(parent context.Context, say func(os.Signal)) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	ch := make(chan os.Signal, 1)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	signal.Notify(ch, signals...)
	go func() {
		defer signal.Stop(ch)
		select {
		case s := <-ch:
			signal.Stop(ch)
			say(s)
			cancel()
		case <-cli.ParentGone():
			signal.Stop(ch)
			say(syscall.SIGTERM)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
