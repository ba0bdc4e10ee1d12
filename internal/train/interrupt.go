package train

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// OnInterrupt returns a context that the first Ctrl-C (or SIGTERM) cancels
// after calling say. From then on signals have their usual effect, so a second
// one ends the process at once. Call stop when done.
func OnInterrupt(parent context.Context, say func(os.Signal)) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(ch)
		select {
		case s := <-ch:
			signal.Stop(ch)
			say(s)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
