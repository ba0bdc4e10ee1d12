package main

import (
	"archive/zip"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
)

// What people get wrong ends with exit code 2 and says what to do instead.
func TestMistakesAreExplained(t *testing.T) {
	workFolder(t) // data/small
	writeTasks(t, "tasks/training", toy("a", 0, true))
	commandtest.Write(t, "text.txt", "words\n")
	commandtest.Write(t, "data/text/manifest.json", `{"files": []}`)
	commandtest.Write(t, "data/text/tokenizer.json", `{}`)
	ok(t, trainTiny+"--steps 1 --eval-steps 0 --run runs/a")
	commandtest.ForeignRun(t, "runs/lm", "lm")
	commandtest.Write(t, "bom.json", "\xef\xbb\xbf{}")
	commandtest.Write(t, "answers.json", `{"a": [{"attempt_1": [[1]], "attempt_2": [[2]]}]}`)
	commandtest.Write(t, "-dash.json", "{}")
	require.NoError(t, os.Symlink("tasks", "link"))
	require.NoError(t, os.WriteFile("step_1", torchFile(t), 0o644))
	here, err := os.Getwd()
	require.NoError(t, err)
	hrmProgram.Mistakes(t, map[string]string{
		"train --data nosuch":                         "open dataset: stat nosuch: no such file or directory (hrm build-data makes one); looked in " + here,
		"train --data data/smal":                      "looked in " + here + "/data; did you mean small?",
		"train --data " + here + "/data/sm":           "; did you mean " + here + "/data/small?",
		"train --data data/text":                      "data/text holds a dataset of lm prepare, expected a dataset of hrm build-data; lm train --data data/text trains on it",
		"train --data tasks":                          "tasks holds tasks of ARC, expected a dataset of hrm build-data; hrm build-data --input tasks makes a dataset of them",
		"train --data tasks/training/a.json":          "hrm build-data --input tasks/training/a.json makes a dataset of them",
		"train --data runs/a":                         "runs/a holds a run of hrm train, expected a dataset of hrm build-data",
		"train --config nosuch.yaml":                  "looked in " + here,
		"train --run runs/lm --resume":                "resume: runs/lm holds a run of lm train, expected a run of hrm train; lm eval --run runs/lm evaluates it",
		"eval --run runs/lm":                          "lm eval --run runs/lm evaluates it",
		"eval --run runs/b":                           "looked in " + here + "/runs; did you mean a?",
		"eval --run data/small":                       "data/small holds a dataset of hrm build-data, expected a run of hrm train; hrm train --data data/small trains on it",
		"eval --checkpoint text.txt":                  "text.txt holds text, expected a run of hrm train\n",
		"eval --run runs/a --data data/text":          "expected a dataset of hrm build-data",
		"inspect data/small":                          "hrm train --data data/small trains on it",
		"plot data/small":                             "hrm train --data data/small trains on it",
		"plot nosuch":                                 "looked in " + here,
		"score --predictions runs/lm":                 "expected predictions of hrm eval",
		"score --predictions data/small":              "expected predictions of hrm eval",
		"score --predictions text.txt":                "expected predictions of hrm eval",
		"score --predictions nosuch":                  "looked in " + here,
		"show data/small":                             "data/small holds a dataset of hrm build-data, expected tasks of ARC",
		"show text.txt":                               "text.txt holds text, expected tasks of ARC\n",
		"show halpo":                                  "did you mean halo",
		"show -dash.json":                             "if you mean the file of that name, write ./-dash.json",
		"show data/small:a":                           "expected tasks of ARC; hrm train --data data/small trains on it",
		"show bom.json":                               "bom.json: starts with a byte order mark",
		"train --data link":                           "hrm build-data --input link makes a dataset of them",
		"train --batch-size 3":                        "did you mean --global-batch-size?",
		"solve runs/a":                                "runs/a holds a run of hrm train, expected tasks of ARC",
		"solve data/small":                            "data/small holds a dataset of hrm build-data, expected tasks of ARC",
		"solve step_1":                                "step_1 holds a file of PyTorch, expected tasks of ARC; hrm import step_1 makes a run of a checkpoint",
		"solve tasks --checkpoint data/text":          "data/text holds a dataset of lm prepare, expected a run of hrm train",
		"build-data --input step_1":                   "step_1 holds a file of PyTorch",
		"score --predictions answers.json":            "holds answers in Kaggle's form, expected predictions of hrm eval; hrm score --answers answers.json --truth TASKS scores them",
		"score --watch data/small":                    "data/small holds a dataset of hrm build-data, expected a run of hrm train",
		"score --answers answers.json --truth runs/a": "runs/a holds a run of hrm train, expected tasks of ARC",
		"view data/text":                              "data/text holds a dataset of lm prepare",
		"report data/text":                            "data/text holds a dataset of lm prepare",
		"view --addr here":                            "it is no HOST:PORT",
		"build-data --input data/small":               "expected tasks of ARC",
		"build-data --input runs/a":                   "hrm eval --run runs/a evaluates it",
		"build-data --verify data/text":               "lm train --data data/text trains on it",
		"build-data --tasks nosuch":                   "looked in " + here,
		"train --preset laptp":                        "expected one of hrm_v1, trm, laptop, testing",
		"train --kernel avx5":                         "expected one of ref, c, avx2",
		"trian":                                       "did you mean train?",
		"bench 3":                                     `unexpected argument "3"`,
	})
}

// torchFile is as much of a checkpoint as it takes to recognise one.
func torchFile(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("archive/data.pkl")
	require.NoError(t, err)
	_, err = w.Write([]byte("\x80\x02}."))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// A misspelt flag of any command names the right one.
func TestMisspeltFlags(t *testing.T) {
	commandtest.MisspeltFlags(t, hrmProgram, newRootCmd(nil))
}

func TestExitCodesAreDocumented(t *testing.T) {
	out, _ := ok(t, "--help")
	for _, code := range []string{"0 done", "1 something failed", "2 wrong flags", "130 stopped"} {
		require.Contains(t, strings.ReplaceAll(out, "\n", " "), code)
	}
}
