package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const groupKey = "deeploop_group"

// Group lists a flag in help under a heading of its own.
func Group(fs *pflag.FlagSet, flag, heading string) {
	if err := fs.SetAnnotation(flag, groupKey, []string{heading}); err != nil {
		panic("cli: grouping a flag that is not defined: " + flag)
	}
}

// usage prints how a command is called: commands or flags, grouped flags
// last under their headings.
func usage(c *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", useLine(c))
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding()+1, sub.Name(), sub.Short)
			}
		}
	}
	headings := []string{"Flags"}
	groups := map[string]*pflag.FlagSet{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if g := f.Annotations[groupKey]; len(g) > 0 {
			heading = g[0]
		}
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			groups[heading].SortFlags = c.Flags().SortFlags
			if heading != "Flags" {
				headings = append(headings, heading)
			}
		}
		groups[heading].AddFlag(f)
	})
	if inherited := c.InheritedFlags(); inherited.HasAvailableFlags() {
		headings, groups[allCommands] = append(headings, allCommands), inherited
	}
	for _, h := range headings {
		if groups[h] != nil && groups[h].HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", h, groups[h].FlagUsages())
		}
	}
	if !c.HasParent() && c.HasAvailableSubCommands() {
		b.WriteString("\n" + exitCodes)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help says more about a command.\n", c.CommandPath())
	}
	_, err := fmt.Fprint(c.OutOrStderr(), b.String())
	return err
}

func useLine(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine()
}
