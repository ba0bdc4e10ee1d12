package arc

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSamples(t *testing.T) {
	c, err := Samples()
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.Empty(t, c.Clashes())
	require.Len(t, c.Sources, len(c.Tasks))
	require.Len(t, c.Groups, 2)
	require.Equal(t, "evaluation", c.Groups[0].Name)
	require.Equal(t, "training", c.Groups[1].Name)
	require.GreaterOrEqual(t, c.Groups[0].End, 12)
	require.GreaterOrEqual(t, c.Groups[1].End-c.Groups[1].Start, 24)
	hex := regexp.MustCompile(`^[0-9a-f]{8}$`)
	for i := range c.Tasks {
		task := &c.Tasks[i]
		require.Equal(t, task.Split == "evaluation", task.HoldOut)
		require.NotRegexp(t, hex, task.ID)
		require.GreaterOrEqual(t, len(task.Train), 2, task.ID)
		require.LessOrEqual(t, len(task.Train), 4, task.ID)
		require.GreaterOrEqual(t, len(task.Test), 1, task.ID)
		require.LessOrEqual(t, len(task.Test), 2, task.ID)
		for _, p := range append(append([]Pair(nil), task.Train...), task.Test...) {
			require.LessOrEqual(t, max(p.Input.Rows, p.Input.Cols, p.Output.Rows, p.Output.Cols), 10, task.ID)
			require.True(t, p.Labelled(), task.ID)
		}
	}
}
