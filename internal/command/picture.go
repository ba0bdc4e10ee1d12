package command

import (
	"fmt"

	"deeploop/internal/cli"
	"deeploop/internal/curves"
	"deeploop/internal/files"
)

// CheckPicture refuses, before any work, a path that curves.Save could not
// write: a name without a known format (cli.UsageError), or a file that is no
// such picture and not given up by force. what is drawn, for the message.
func CheckPicture(what, path string, force bool) error {
	kind, known := curves.KindOf(path)
	if !known {
		return cli.Usagef("draw %s: %s does not say the format, expected a name that ends in .png, .svg or .pdf", what, path)
	}
	if _, err := files.Check(path, kind, force, false); err != nil {
		return fmt.Errorf("draw %s: %w", what, err)
	}
	return nil
}
