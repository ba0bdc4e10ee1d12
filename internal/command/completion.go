package command

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/train"
)

// shells have a completion script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// NewCompletionCmd makes the command completion of a program.
func NewCompletionCmd(s *cli.Streams, program string) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes command lines in a shell",
		Long: `Print a script that completes commands, flags and their values: presets,
kernels, placements, and the runs and datasets below runs/ and data/. SHELL is
bash (with its package bash-completion), zsh, fish or powershell.

For the shell you are in, until it ends:
  bash        source <(` + program + ` completion bash)
  zsh         source <(` + program + ` completion zsh)
  fish        ` + program + ` completion fish | source
  powershell  ` + program + ` completion powershell | Out-String | Invoke-Expression

For every shell put the line into ~/.bashrc, ~/.zshrc (below compinit),
~/.config/fish/config.fish or $PROFILE.`,
		Example: "  " + program + " completion bash > " + program + ".bash\n  " + program + " completion zsh > _" + program + "",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		ValidArgs: shells,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(s.Out, true)
			case "zsh":
				return root.GenZshCompletion(s.Out)
			case "fish":
				return root.GenFishCompletion(s.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(s.Out)
			}
			return cli.Usagef("no completion for %q, expected one of %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// Complete tells the shell which values the flags of all commands take: a flag
// of one name means the same everywhere. own are the words of the program's
// flags, beside those that both programs have; its datasets have a marker file.
func Complete(root *cobra.Command, own map[string][]string, marker string) {
	words := map[string][]string{
		"kernel": append(slices.Clone(pick.Kernels), pick.Auto), "precision": {"fp32", "bf16", pick.Auto}, "weights": {"ema", "raw"},
	}
	maps.Copy(words, own)
	folders := map[string]cobra.CompletionFunc{
		"run":  below(RunsFolder, train.MetricsFile),
		"data": below(DataFolder, marker),
	}
	visitCommands(root, func(c *cobra.Command) {
		if folder := folders[argumentKind(c)]; folder != nil && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = folder
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete := folders[f.Name]
			switch {
			case words[f.Name] != nil:
				complete = oneOf(words[f.Name])
			case complete == nil && takesNumber(f):
				complete = cobra.NoFileCompletions
			}
			if complete != nil {
				cobra.CheckErr(c.RegisterFlagCompletionFunc(f.Name, complete))
			}
		})
	})
}

func visitCommands(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		visitCommands(sub, visit)
	}
}

// argumentKind says what a command's arguments are, by its line of use.
func argumentKind(c *cobra.Command) string {
	if strings.Contains(c.Use, "[RUN") {
		return "run"
	}
	return ""
}

func takesNumber(f *pflag.Flag) bool {
	switch kind := f.Value.Type(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "float"), kind == "duration", kind == "number":
		return true
	}
	return false
}

func oneOf(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
		for _, w := range words {
			if strings.HasPrefix(w, begun) {
				offers = append(offers, w)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// below completes folders below parent that have the marker file, and any
// others too.
func below(parent, marker string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		found, _ := filepath.Glob(filepath.Join(parent, "*", marker)) // a bad pattern: none
		var names []string
		for _, f := range found {
			if dir := filepath.ToSlash(filepath.Dir(f)); strings.HasPrefix(dir, begun) {
				names = append(names, dir)
			}
		}
		if len(names) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
