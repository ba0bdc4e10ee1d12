package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
)

// What people get wrong ends with exit code 2 and says what to do instead.
func TestMistakesAreExplained(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "text.txt", "some words\n")
	commandtest.Write(t, "tasks/training/a.json", `{"train": [{"input": [[1]], "output": [[1]]}], "test": [{"input": [[2]]}]}`)
	commandtest.Write(t, "data/grids/train/dataset.json", `{}`)
	commandtest.Write(t, "data/grids/manifest.json", `{"files": {}}`)
	ok(t, trainTiny+"--steps 1 --run runs/a")
	ok(t, "prepare --input text.txt --tokenizer byte --out data/words")
	ok(t, "export --run runs/a --out exported")
	commandtest.ForeignRun(t, "runs/hrm", "hrm")
	here, err := os.Getwd()
	require.NoError(t, err)
	lmProgram.Mistakes(t, map[string]string{
		"train --data nosuch":                                 "looked in " + here,
		"train --data data/word":                              "looked in " + here + "/data; did you mean words?",
		"train --data text.txt":                               "text.txt holds text, expected a dataset of lm prepare; lm prepare --input text.txt --out data/text makes a dataset of it",
		"train --data data/grids":                             "data/grids holds a dataset of hrm build-data, expected a dataset of lm prepare; hrm train --data data/grids trains on it",
		"train --data tasks":                                  "hrm build-data --input tasks makes a dataset of them",
		"train --data runs/a":                                 "runs/a holds a run of lm train, expected a dataset of lm prepare",
		"train --run runs/hrm --resume":                       "resume: runs/hrm holds a run of hrm train, expected a run of lm train; hrm eval --run runs/hrm evaluates it",
		"eval --run runs/hrm":                                 "hrm eval --run runs/hrm evaluates it",
		"eval --run data/words":                               "lm train --data data/words trains on it",
		"eval --run exported":                                 "exported holds a model of lm export, expected a run of lm train; lm import exported --run runs/imported makes a run of it",
		"eval --data data/grids":                              "hrm train --data data/grids trains on it",
		"eval --suite nosuch":                                 "looked in " + here,
		"generate --run runs/hrm":                             "expected a run of lm train",
		"suite --run runs/hrm":                                "expected a run of lm train",
		"serve --run runs/hrm --addr 127.0.0.1:0":             "expected a run of lm train",
		"export --run runs/hrm --out x":                       "expected a run of lm train",
		"diagnose kappa --run runs/hrm":                       "expected a run of lm train",
		"import runs/a --run runs/b":                          "runs/a holds a run of lm train, expected a model of lm export",
		"import nosuch --run runs/b":                          "looked in " + here,
		"inspect text.txt":                                    "text.txt holds text, expected a run of lm train\n",
		"plot data/words":                                     "lm train --data data/words trains on it",
		"show data/grids":                                     "hrm train --data data/grids trains on it",
		"prepare --verify data/grids":                         "hrm train --data data/grids trains on it",
		"prepare --input txt.txt --out x":                     "did you mean text.txt?",
		"suite convert --task piqua --input text.txt --out x": "did you mean piqa?",
		"diagnose kapa":                                       "did you mean kappa?",
		"genrate":                                             "did you mean generate?",
		"train --placement deeplop":                           "expected one of deeploop",
	})
}

// A misspelt flag of any command names the right one.
func TestMisspeltFlags(t *testing.T) {
	commandtest.MisspeltFlags(t, lmProgram, newRootCmd(nil))
}
