package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/internal/wording"
)

// Run executes one command line of a program and returns the exit code. Call
// it once per root: it finishes the command tree (streams, how mistakes are
// reported, flag names with underscores) and prints the error, if any, as
// "PROGRAM: error". Results that could not be written to s.Out are one.
func Run(root *cobra.Command, args []string, s *Streams) int {
	out := &output{w: s.Out}
	s.Out = out
	prepare(root, s)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		err = out.failed()
	}
	if err != nil {
		if s.log != nil && (slices.Contains(args, "--log-format=json") || strings.Contains("\n"+strings.Join(args, "\n")+"\n", "\n--log-format\njson\n")) {
			s.log.json = true // also where it stands behind a flag that is wrong
		}
		if text := onceEach(err.Error()) + missing(err); s.JSON() {
			s.Log().Error(text)
		} else {
			fmt.Fprintf(&screen{s.logging(), s.Err}, "%s: %s\n", root.Name(), printable(text))
		}
	}
	return ExitCode(err)
}

// printable escapes what would steer a terminal, as in names of files.
func printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func prepare(root *cobra.Command, s *Streams) {
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetGlobalNormalizationFunc(normalizeFlag)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	eachCommand(root, func(c *cobra.Command) {
		if c.RunE == nil && c.Run == nil { // only has commands
			c.Args = noSuchCommand
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
		c.Args = usageArgs(c.Args)
	})
}

func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, visit)
	}
}

// normalizeFlag lets people write keys as in files: --hidden_size, and
// --data-path for --data.
func normalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	name = strings.ReplaceAll(name, "_", "-")
	if name == "data-path" {
		name = "data"
	}
	return pflag.NormalizedName(name)
}

// usageArgs makes a complaint about positional arguments a UsageError, and
// explains Hydra's key=value arguments. nil allows none.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		inner := check
		if inner == nil {
			for _, a := range args {
				if key, _, ok := strings.Cut(a, "="); ok && key != "" && c.Flags().Lookup("set") != nil {
					return Usagef("unexpected argument %q; write --set %s", a, a)
				}
			}
			inner = cobra.NoArgs
			if len(args) > 0 {
				return Usagef("unexpected argument %q; see %s --help", args[0], c.CommandPath())
			}
		}
		if err := inner(c, args); err != nil {
			return &UsageError{Err: err}
		}
		return nil
	}
}

// noSuchCommand is the Args of the root and of other commands that do nothing
// but hold some: any argument is a misspelt command.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := wording.Nearest(args[0], names); near != "" {
		return fmt.Errorf("unknown command %q; did you mean %s?", args[0], near)
	}
	if len(names) == 0 {
		return fmt.Errorf("unknown command %q; see %s --help", args[0], c.CommandPath())
	}
	return fmt.Errorf("unknown command %q; expected one of %s", args[0], strings.Join(names, ", "))
}

// flagError makes pflag's complaints UsageErrors and suggests near flags.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		given := "--" + unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" { // -word, or the name of a file
			given = "-" + strings.SplitN(short, "=", 2)[0]
		}
		if near := nearFlag(c, strings.TrimLeft(given, "-")); near != "" {
			return Usagef("unknown flag %s; did you mean --%s?", given, near)
		}
		if _, err := os.Lstat(given); err == nil {
			return Usagef("unknown flag %s; if you mean the file of that name, write %s", given, "./"+given)
		}
		return Usagef("unknown flag %s; see %s --help", given, c.CommandPath())
	}
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) { // its words are those of a Go function
		f := invalid.GetFlag()
		return Usagef("--%s is %q, expected %s", f.Name, invalid.GetValue(), wanted(f.Value.Type(), errors.Is(err, strconv.ErrRange)))
	}
	return &UsageError{Err: err}
}

// nearFlag is the flag of a command that was probably meant: one spelt alike,
// or the only one that ends in the words given. A single letter means none.
func nearFlag(c *cobra.Command, given string) string {
	if len(given) < 2 {
		return ""
	}
	var names, ending []string
	name := string(normalizeFlag(nil, given))
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names = append(names, f.Name)
		if strings.HasSuffix(f.Name, "-"+name) {
			ending = append(ending, f.Name)
		}
	})
	if near := wording.Nearest(name, names); near != "" || len(ending) != 1 {
		return near
	}
	return ending[0]
}

// wanted says what values a flag of one of pflag's types takes.
func wanted(kind string, tooLarge bool) string {
	list := strings.HasSuffix(kind, "Slice")
	kind = strings.TrimSuffix(kind, "Slice")
	what := "a whole number"
	switch {
	case kind == "bool":
		what = "true or false"
	case strings.HasPrefix(kind, "float"):
		what = "a number"
	case strings.HasPrefix(kind, "uint"):
		what = "a whole number of at least 0"
	}
	if tooLarge {
		what += " nearer to 0"
	}
	if list {
		what += ", or several with commas between them"
	}
	return what
}
