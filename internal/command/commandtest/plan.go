package commandtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command"
)

// PlanRepeats checks that the command line which a plan prints and the file that
// it leaves in a run's folder, here the working folder, both give its
// configuration again. plan resolves the arguments of train.
func PlanRepeats[T any](t *testing.T, plan func(args ...string) (*command.Plan[T], error), lines [][]string) {
	t.Helper()
	for _, args := range lines {
		first, err := plan(args...)
		require.NoError(t, err, "%v", args)
		again, err := plan(append(first.RepeatArgs[1:], "--run=r")...)
		require.NoError(t, err, "%v prints %s", args, first.Repeat)
		require.Equal(t, first.Config, again.Config, "%v prints %s", args, first.Repeat)

		Write(t, "config.yaml", string(first.YAML))
		fromFile, err := plan("--config", "config.yaml", "--run=r")
		require.NoError(t, err)
		require.Equal(t, first.Config, fromFile.Config, "%v", args)
		require.Contains(t, string(first.YAML), first.Repeat)
	}
}
