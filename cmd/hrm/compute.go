package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
)

// kernelVariable names the kernel where no flag and no file does.
const kernelVariable = "DEEPLOOP_KERNEL"

// compute is how a command asks for arithmetic. The From fields say who named
// kernel and precision where it was not the command line or a file.
type compute struct {
	kernel, precision         string
	threads                   int
	kernelFrom, precisionFrom string
}

// addFlags registers the flags of a command without a training configuration.
// unset says what happens without --precision.
func (c *compute) addFlags(fs *pflag.FlagSet, unset string) {
	fs.StringVar(&c.kernel, "kernel", pick.Auto, "ref, c, avx2, avx512, amx or auto (also $"+kernelVariable+")")
	fs.StringVar(&c.precision, "precision", "", "fp32, bf16 or auto (default "+unset+")")
	fs.IntVar(&c.threads, "threads", 0, "compute threads; 0 is one per core")
}

// open chooses the kernel and says which and why on the first line. given
// tells that the kernel was asked for and the environment does not count.
func (c compute) open(s *cli.Streams, given bool) (pick.Choice, error) {
	r := pick.Request{Precision: c.precision, Threads: c.threads, PrecisionFrom: c.precisionFrom}
	r.Kernel, r.KernelFrom = c.asked(given)
	choice, err := pick.Open(r)
	if err != nil {
		return choice, fmt.Errorf("choose a kernel: %w", err)
	}
	fmt.Fprintln(s.Err, choice.Reason)
	return choice, nil
}

// asked is the kernel that was asked for, and who did where it was not the
// command line or a file.
func (c compute) asked(given bool) (kernel, from string) {
	if env := os.Getenv(kernelVariable); env != "" && !given {
		return env, "by $" + kernelVariable
	}
	return c.kernel, c.kernelFrom
}
