package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Parse reads a command line as Run does, but runs nothing: it finds the
// command and checks flags, their values and arguments. As Run, it takes a root
// once.
func Parse(root *cobra.Command, args []string) error {
	prepare(root, &Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	if err := c.ParseFlags(rest); err != nil {
		return flagError(c, err)
	}
	return c.ValidateArgs(c.Flags().Args())
}
