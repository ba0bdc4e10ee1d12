package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/internal/goldentest"
)

// The lists of experiments/solve follow their rule.
func TestSmallTaskLists(t *testing.T) {
	list := func(name string) []string {
		t.Helper()
		ids, err := readTaskList(filepath.Join(goldentest.Root(), "experiments", "solve", name))
		require.NoError(t, err)
		return ids
	}
	forty, ten := list("arc1-small-40.txt"), list("arc1-small-10.txt")
	require.Len(t, forty, 40)
	require.Len(t, ten, 10)
	for i, id := range ten {
		require.Equal(t, forty[4*i], id)
	}
	dir := filepath.Join(goldentest.ARCData(t), "arc-agi-1")
	c, err := arc.Load(filepath.Join(dir, "evaluation"))
	require.NoError(t, err)
	var small []string
	for _, task := range c.Tasks { // by name
		most := 0
		for _, p := range append(append([]arc.Pair(nil), task.Train...), task.Test...) {
			most = max(most, p.Input.Rows, p.Input.Cols, p.Output.Rows, p.Output.Cols)
		}
		if most <= 10 {
			small = append(small, task.ID)
		}
	}
	require.Equal(t, small[:40], forty)
}
