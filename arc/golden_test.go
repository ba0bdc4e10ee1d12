package arc

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
)

func TestGoldenCorpora(t *testing.T) {
	data := goldentest.ARCData(t)
	loaded := map[string]*Corpus{}
	for _, tc := range []struct {
		folder, split           string
		tasks, tests, testFirst int
	}{
		{"arc-agi-1", "evaluation", 400, 419, 42},
		{"arc-agi-1", "training", 400, 416, 39},
		{"arc-agi-2", "evaluation", 120, 167, 0},
		{"arc-agi-2", "training", 1000, 1076, 0},
		{"concept-arc/corpus", "", 160, 480, 0},
		{"concept-arc", "", 160, 480, 0},
	} {
		t.Run(tc.folder+" "+tc.split, func(t *testing.T) {
			if loaded[tc.folder] == nil {
				c, err := Load(filepath.Join(data, tc.folder))
				require.NoError(t, err)
				loaded[tc.folder] = c
			}
			c := loaded[tc.folder]
			require.Empty(t, c.Clashes())
			tasks, tests, testFirst := 0, 0, 0
			for i := range c.Tasks {
				task := &c.Tasks[i]
				require.Equal(t, task.Split == "evaluation", task.HoldOut, task.File)
				if tc.split != "" && task.Split != tc.split {
					continue
				}
				tasks++
				tests += len(task.Test)
				if task.TestFirst {
					testFirst++
				}
			}
			require.Equal(t, []int{tc.tasks, tc.tests, tc.testFirst}, []int{tasks, tests, testFirst})
		})
	}
}

// ARC-AGI-1 and -2 overlap, as people who score one after training on the
// other must know.
func TestGoldenT14SharedIDsOfARC1AndARC2(t *testing.T) {
	data := goldentest.ARCData(t)
	c, err := Load(filepath.Join(data, "arc-agi-1"), filepath.Join(data, "arc-agi-2"))
	require.NoError(t, err)
	shared := map[[2]string]int{}
	for _, clash := range c.Clashes() {
		require.Len(t, clash.Tasks, 2)
		shared[[2]string{c.Tasks[clash.Tasks[0]].Split, c.Tasks[clash.Tasks[1]].Split}]++
	}
	require.Equal(t, 376, shared[[2]string{"evaluation", "training"}])
	require.Equal(t, 6, shared[[2]string{"evaluation", "evaluation"}])
	require.NotEmpty(t, c.Warnings)
}

func TestGoldenFixtureTasksRoundTrip(t *testing.T) {
	goldentest.Each(t, goldentest.Files(t, "dataset_fixture*"), func(t *testing.T, dir string) {
		c, err := Load(filepath.Join(dir, "source"))
		require.NoError(t, err)
		for i := range c.Tasks {
			task := c.Tasks[i]
			again, err := parseFile(task.File, task.ID, task.JSON(), &notes{})
			require.NoError(t, err)
			again.tasks[0].Split, again.tasks[0].HoldOut = task.Split, task.HoldOut
			require.Equal(t, task, again.tasks[0])
		}
	})
}
