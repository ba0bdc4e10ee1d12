package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
)

// NewReferenceCmd makes the hidden command reference of a program, which writes
// its pages of docs/reference: PROGRAM.md with all commands and
// PROGRAM-configuration.md with all keys.
func NewReferenceCmd[T any](s *cli.Streams, program string, schema *cli.Schema[T], presets []string, preset func(string) (T, error)) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "reference", Short: "Write the reference pages", Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			var all []cli.Preset[T]
			for _, name := range presets {
				value, err := preset(name)
				if err != nil {
					return err
				}
				all = append(all, cli.Preset[T]{Name: name, Value: value})
			}
			configuration := program + "-configuration.md"
			for name, page := range map[string]string{
				program + ".md": cli.Reference(c.Root(), configuration), configuration: cli.ConfigurationPage(program, schema, all),
			} {
				path := filepath.Join(out, name)
				if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
					return fmt.Errorf("write reference: %w", err)
				}
				fmt.Fprintln(s.Out, path)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", ".", "`DIR` to write into")
	return cmd
}
