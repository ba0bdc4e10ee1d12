package train

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// OnInterrupt returns a context that the first Ctrl-C (or SIGTERM, or the end
// of the terminal unless nohup protects from it) cancels after calling say. From then on signals have their usual effect, so a second
// one ends the process at once. Call stop when done.
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
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
