package command

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
)

// KernelVariable names the kernel where no flag and no file does.
const KernelVariable = "DEEPLOOP_KERNEL"

// Compute is how a command asks for arithmetic. The From fields say who named
// kernel and precision where it was not the command line or a file.
type Compute struct {
	Kernel, Precision         string
	Threads                   int
	KernelFrom, PrecisionFrom string
}

// AddFlags registers the flags of a command without a training configuration.
// unset says what happens without --precision.
func (c *Compute) AddFlags(fs *pflag.FlagSet, unset string) {
	fs.StringVar(&c.Kernel, "kernel", pick.Auto, "ref, c, avx2, avx512, amx or auto (also $"+KernelVariable+")")
	fs.StringVar(&c.Precision, "precision", "", "fp32, bf16 or auto (default "+unset+")")
	fs.IntVar(&c.Threads, "threads", 0, "compute threads; 0 is one per core")
}

// Open chooses the kernel and says which and why on the first line. given
// tells that the kernel was asked for and the environment does not count.
func (c Compute) Open(s *cli.Streams, given bool) (pick.Choice, error) {
	r := pick.Request{Precision: c.Precision, Threads: c.Threads, PrecisionFrom: c.PrecisionFrom}
	r.Kernel, r.KernelFrom = c.Asked(given)
	choice, err := pick.Open(r)
	if err != nil {
		return choice, fmt.Errorf("choose a kernel: %w", err)
	}
	s.Infof("%s", choice.Reason)
	return choice, nil
}

// Asked returns the kernel that was asked for, and who did where it was not the
// command line or a file.
func (c Compute) Asked(given bool) (kernel, from string) {
	if env := os.Getenv(KernelVariable); env != "" && !given {
		return env, "by $" + KernelVariable
	}
	return c.Kernel, c.KernelFrom
}
