package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reference is the help of all commands below root as one page of Markdown.
// Flags with a heading of their own (Group) are left to the page configuration.
func Reference(root *cobra.Command, configuration string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s. Made from the help texts by `go generate ./cmd/...`.\n\n", root.Name(), root.Short)
	eachCommand(root, func(c *cobra.Command) {
		if c != root && !c.Hidden && c.HasExample() {
			fmt.Fprintf(&b, "- [%s](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
		}
	})
	fmt.Fprintf(&b, "\n```\n%s\n```\n", plainExample(root.Example))
	b.WriteString("\n" + exitCodes)
	if f := root.PersistentFlags(); f.HasAvailableFlags() {
		fmt.Fprintf(&b, "\n%s:\n", allCommands)
		describeFlags(&b, f)
	}
	eachCommand(root, func(c *cobra.Command) {
		if c != root && !c.Hidden && c.HasExample() {
			describeCommand(&b, c, configuration)
		}
	})
	return b.String()
}

func describeCommand(b *strings.Builder, c *cobra.Command, configuration string) {
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), paragraphs(long), plainExample(c.Example))
	grouped := false
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = c.Flags().SortFlags
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[groupKey]) > 0 {
			grouped = true
		} else {
			own.AddFlag(f)
		}
	})
	describeFlags(b, own)
	if grouped {
		fmt.Fprintf(b, "\nEvery key of the [configuration](%s) is a flag too.\n", configuration)
	}
}

// describeFlags is a table.
func describeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	head := "\n| flag | default | meaning |\n| --- | --- | --- |\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		b.WriteString(head)
		head = ""
		takes, meaning := pflag.UnquoteUsage(f)
		if takes != "" {
			takes = " " + takes
		}
		fmt.Fprintf(b, "| `--%s%s` | %s | %s |\n", f.Name, takes, defaultOf(f), cell(meaning))
	})
}

// paragraphs makes indented lines blocks of their own, but for those that go on
// with an entry of a list, and joins no others.
func paragraphs(text string) string {
	var b strings.Builder
	inside, list := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		list = strings.HasPrefix(line, "- ") || list && indented
		if list {
			indented = false
		}
		if indented != inside {
			if indented && !strings.HasSuffix(b.String(), "\n\n") {
				b.WriteString("\n")
			}
			b.WriteString("```\n")
			if !indented && line != "" {
				b.WriteString("\n")
			}
			inside = indented
		}
		if indented {
			line = strings.TrimPrefix(line, "  ")
		}
		b.WriteString(line + "\n")
	}
	if inside {
		b.WriteString("```")
	}
	return strings.TrimRight(b.String(), "\n")
}

func plainExample(example string) string {
	var lines []string
	for line := range strings.Lines(example) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

// defaultOf is the default of a flag where it says more than "nothing".
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "[]", "0", "<nil>":
		return ""
	}
	return "`" + cell(f.DefValue) + "`"
}

// cell is text inside a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", `\|`)
}

// Preset is a configuration to start from.
type Preset[T any] struct {
	Name  string
	Value T
}

// ConfigurationPage describes the keys of a configuration and what they are in
// presets, as a page of Markdown.
func ConfigurationPage[T any](program string, s *Schema[T], presets []Preset[T]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Configuration of %s train\n\n", program)
	fmt.Fprintf(&b, "Keys as files (`--config FILE.yaml`) and `--set KEY=VALUE` have them, and their flags. A value that is not set comes from the preset. "+
		"Made from the configuration by `go generate ./cmd/...`.\n")
	fields := slices.Clone(s.fields)
	slices.SortStableFunc(fields, func(a, b *Field) int { return cmp.Compare(a.section(), b.section()) })
	section := "\x00"
	for _, f := range fields {
		if group := f.section(); group != section {
			section = group
			title := "Top level"
			if group != "" {
				title = "Section `" + group + "`"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | flag | type |", title)
			for _, p := range presets {
				fmt.Fprintf(&b, " `%s` |", p.Name)
			}
			fmt.Fprintf(&b, " meaning |\n|%s\n", strings.Repeat(" --- |", 4+len(presets)))
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s |", f.Key, f.Flag, f.kind)
		for _, p := range presets {
			text := s.Text(p.Value, f)
			if text != "" {
				text = "`" + cell(text) + "`"
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		fmt.Fprintf(&b, " %s |\n", cell(f.Help))
	}
	return b.String()
}

// section is the key without its last part, "" at the top level.
func (f *Field) section() string {
	return f.Key[:max(0, strings.LastIndexByte(f.Key, '.'))]
}
