package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Indented lines of a help text are blocks of the page, but not where an entry
// of a list goes on.
func TestParagraphsOfTheReference(t *testing.T) {
	require.Equal(t, "Shows\n\n- one, which is\n  long;\n- two.\n\nAs in\n\n```\na: 1\n  b: 2\n```\n\nand so on.",
		paragraphs("Shows\n\n- one, which is\n  long;\n- two.\n\nAs in\n  a: 1\n    b: 2\n\nand so on."))
}
