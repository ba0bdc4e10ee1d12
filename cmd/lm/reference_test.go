package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
	"deeploop/internal/goldentest"
)

// The pages in docs/reference are those of the commands as they are.
func TestReferenceIsCurrent(t *testing.T) {
	dir := t.TempDir()
	ok(t, "reference --out", dir)
	for _, name := range []string{"lm.md", "lm-configuration.md"} {
		want := commandtest.Read(t, filepath.Join(dir, name))
		require.Equal(t, want, commandtest.Read(t, goldentest.Root(), "docs", "reference", name), "run go generate ./cmd/...")
	}
}
