package commandtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// asProgram is set in the environment of shells that run examples: a test's
// process with it is the program, with the arguments of its own command line.
const asProgram = "DEEPLOOP_TEST_AS_PROGRAM"

// Small changes the arguments of a command line in an example so that it takes
// seconds, as by a flag at the end. It must not make another line work.
type Small func(args []string) []string

// Examples are the lines in the help of a program, run as they are written by
// a shell, in one folder, a command after the other.
type Examples struct {
	Root *cobra.Command
	// Order names the commands that come first, as in "suite convert"; the
	// others follow in the order of the help. "" is the root's own.
	Order []string
	// Before makes what a user would have before the lines of a command.
	Before map[string]func(t *testing.T)
	// Line, if set, runs a line in another way and reports true.
	Line func(t *testing.T, line string) bool
	// Patience is the most a line may take, a minute where it is 0.
	Patience time.Duration
}

// Run runs all lines; a command without any is a failure. The working folder is an empty one then; nobody's data
// is needed that Before does not make.
func (e Examples) Run(t *testing.T) {
	t.Helper()
	require.Empty(t, withoutExample(e.Root))
	if runtime.GOOS == "windows" {
		t.Skip("examples are lines for a POSIX shell")
	}
	t.Chdir(t.TempDir())
	e.asProgram(t)
	for _, c := range e.commands() {
		name := commandName(c)
		if before := e.Before[name]; before != nil {
			before(t)
		}
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" && (e.Line == nil || !e.Line(t, line)) {
				e.shell(t, line)
			}
		}
	}
}

// asProgram makes the program's name in a shell this test's file.
func (e Examples) asProgram(t *testing.T) {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, e.Root.Name())))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	AsProgram(t)
}

// AsProgram makes processes of this test's file the program, on what Small makes
// of their arguments.
func AsProgram(t *testing.T) {
	t.Helper()
	t.Setenv(asProgram, inSmall)
}

// SweepOfTheHelp runs the file of settings that the help of sweep shows, in the
// working folder, as AsProgram makes it, and checks that every setting gets its
// value in every column.
func (p Program) SweepOfTheHelp(t *testing.T, help string) {
	t.Helper()
	var file strings.Builder
	for line := range strings.Lines(help) {
		if rest, indented := strings.CutPrefix(line, "  "); indented {
			file.WriteString(rest)
		}
	}
	Write(t, "help.yaml", file.String())
	AsProgram(t)
	out, _ := p.OK(t, "sweep help.yaml")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, rows, 4, "head, rule and two settings")
	require.Contains(t, rows[2], "| 3 of 3 |")
	require.Contains(t, rows[3], "| 1 of 1 |")
	for _, row := range rows[2:] {
		require.Regexp(t, `^\| \w+ \| \d of \d( \| [\d.e-]+( ± [\d.e-]+)?){2} \|$`, row)
	}
}

// Page runs the lines of a Markdown page's code blocks that begin with the
// program's name, or with one of others, in the working folder. Examples.Line
// may run some in another way.
func (e Examples) Page(t *testing.T, text string, others ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("examples are lines for a POSIX shell")
	}
	e.asProgram(t)
	ran := 0
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 { // between blocks
			continue
		}
		for line := range strings.Lines(part) {
			line = strings.TrimSpace(line)
			first, _, _ := strings.Cut(line, " ")
			if first != e.Root.Name() && !slices.Contains(others, first) || e.Line != nil && e.Line(t, line) {
				continue
			}
			e.shell(t, line)
			ran++
		}
	}
	require.NotZero(t, ran)
}

// shell runs one line, which must succeed and write no warning about itself.
func (e Examples) shell(t *testing.T, line string) {
	t.Helper()
	patience := e.Patience
	if patience == 0 {
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-ec", line)
	c.WaitDelay = time.Second // what the shell started may hold its streams
	begun := time.Now()
	out, err := c.CombinedOutput()
	t.Logf("%5.1f s  %s", time.Since(begun).Seconds(), line)
	require.NoError(t, err, "this example of %s does not work as written (what it needs is made in the test):\n  %s\n%s", e.Root.Name(), line, out)
}

// commands are all commands with examples, in the order to run them.
func (e Examples) commands() (list []*cobra.Command) {
	all := allCommands(e.Root)
	rank := func(c *cobra.Command) int {
		if i := slices.Index(e.Order, commandName(c)); i >= 0 {
			return i
		}
		return len(e.Order)
	}
	slices.SortStableFunc(all, func(a, b *cobra.Command) int { return rank(a) - rank(b) })
	return all
}

// withoutExample lists the commands that do something and whose help has no
// example.
func withoutExample(root *cobra.Command) (names []string) {
	for _, c := range allCommands(root) {
		if c.Runnable() && !c.HasExample() && !c.Hidden {
			names = append(names, c.CommandPath())
		}
	}
	return names
}

func allCommands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, allCommands(sub)...)
	}
	return list
}

// commandName is the path of a command below its root.
func commandName(c *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), c.Root().Name()))
}
