package cli

import (
	"io"
	"os"
	"os/exec"
	"sync"
)

// endsWithInput is set in the environment of a process whose standard input is
// the pipe of EndsWithParent.
const endsWithInput = "DEEPLOOP_ENDS_WITH_INPUT"

// EndsWithParent makes the process of this program that c will start end soon
// after this one, as by SIGTERM, however this one ends: its standard input is a
// pipe that nobody writes to, and that the system closes then. (Linux' own
// means, Pdeathsig, sends the signal again for each thread that ends, and a
// second one ends a training without saving.)
func EndsWithParent(c *exec.Cmd) error {
	c.Env = append(c.Environ(), endsWithInput+"=yes")
	_, err := c.StdinPipe() // closed by c.Wait
	return err
}

// ParentGone returns a channel that is closed when the process that started
// this one by EndsWithParent has ended; nil, which waits for ever, where none
// did.
var ParentGone = sync.OnceValue(func() <-chan struct{} {
	if os.Getenv(endsWithInput) == "" {
		return nil
	}
	os.Unsetenv(endsWithInput) // processes of this one have other inputs
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	return gone
})
