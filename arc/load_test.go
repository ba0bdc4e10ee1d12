package arc

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
)

func TestGoldenCorpora(t *testing.T) {
	data := goldentest.ARCData(t)
	count := func(c *Corpus, split string) (tasks, tests, testFirst int) {
		for i := range c.Tasks {
			if task := &c.Tasks[i]; split == "" || task.Split == split {
				tasks++
				tests += len(task.Test)
				if task.TestFirst {
					testFirst++
				}
				require.Equal(t, task.Split == "evaluation", task.HoldOut, task.File)
			}
		}
		return
	}
	for _, want := range []struct {
		folder, split           string
		tasks, tests, testFirst int
	}{
		{"arc-agi-1", "training", 400, 416, 39},
		{"arc-agi-1", "evaluation", 400, 419, 42},
		{"arc-agi-2", "training", 1000, 1076, -1},
		{"arc-agi-2", "evaluation", 120, 167, -1},
		{"concept-arc/corpus", "", 160, 480, -1},
		{"concept-arc", "", 160, 480, -1},
	} {
		t.Run(want.folder+" "+want.split, func(t *testing.T) {
			c, err := Load(filepath.Join(data, want.folder))
			require.NoError(t, err)
			tasks, tests, testFirst := count(c, want.split)
			require.Equal(t, want.tasks, tasks)
			require.Equal(t, want.tests, tests)
			if want.testFirst >= 0 {
				require.Equal(t, want.testFirst, testFirst)
			}
			t.Log(c, c.Warnings)
		})
	}
}
