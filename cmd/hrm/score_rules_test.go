package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
)

func TestLadderIsSortedWithoutDoubles(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true))
	build(t, "set", 3, "evaluation")
	predict(t, "p.zst", "set", right)
	rungs := func(doc report) (ks []int) {
		for _, s := range doc.Ladder {
			ks = append(ks, s.K)
		}
		return ks
	}
	require.Equal(t, []int{1, 3, 20}, rungs(scored(t, "--predictions", "p.zst", "--ladder", "20,1,3,1,20")))
	code, out, _ := score("--predictions", "p.zst", "--ladder", "1,1,1", "--votes", "4")
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, "pass@1 "), out)

	// A submission has two attempts.
	writeFile(t, "sub.json", `{"a": [{"attempt_1": [[1]], "attempt_2": [[1]], "attempt_3": [[2]]}]}`)
	answers := []string{"--answers", "sub.json", "--truth", "evaluation"}
	doc := scored(t, append(answers, "--ladder", "1000,2,3,2")...)
	require.Equal(t, []int{2}, rungs(doc))
	require.Contains(t, doc.Warnings[0], "--ladder: left out 3 1000: a submission has 2 attempts")
	require.Equal(t, "1 attempts after the second do not count: a test[0].attempt_3", doc.Warnings[1])
	require.Equal(t, []int{2}, rungs(scored(t, append(answers, "--ladder", "7")...)))
	doc = scored(t, append(answers, "--votes", "1")...)
	require.Equal(t, []int{1, 2}, rungs(doc))
	require.Len(t, doc.Warnings, 1)
	refused(t, append(answers, "--votes", "3"), "--votes is 3", "pass@2 is all there is")
}

// Two people who hold the same right answers in different files can see it.
func TestTruthHashesOfKaggleFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("alone", 0o755))
	solutions := `{"a": [[[5, 6]], [[7]]]}`
	writeFile(t, "x_challenges.json", `{"a": {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}, {"input": [[4]]}]}}`)
	writeFile(t, "x_solutions.json", solutions)
	writeFile(t, "alone/x_solutions.json", solutions)
	writeFile(t, "sub.json", `{"a": []}`)
	both := scored(t, "--answers", "sub.json", "--truth", "x_challenges.json")
	alone := scored(t, "--answers", "sub.json", "--truth", "alone/x_solutions.json")
	require.Len(t, both.TruthSHA256, 64)
	require.Empty(t, alone.TruthSHA256)
	require.Equal(t, both.TruthOutputsSHA256, alone.TruthOutputsSHA256)
	require.NotEqual(t, both.TruthSHA256, both.TruthOutputsSHA256)
	_, out, _ := score("--answers", "sub.json", "--truth", "alone/x_solutions.json")
	require.Contains(t, out, "outputs only  "+both.TruthOutputsSHA256)
	require.NotContains(t, out, "truth sha256")
}

// Tokens that no answer can have are damage: the row and the value are named.
func TestScoreRefusesTokensOutsideTheVocabulary(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true, true))
	build(t, "set", 3, "evaluation")
	n := 0
	predict(t, "p.zst", "set", func(_ arc.Task, _, _ int, label []uint8) []uint8 {
		p := append([]uint8(nil), label...)
		if n++; n == 3 {
			p[57] = 200
		}
		return p
	})
	refused(t, []string{"--predictions", "p.zst", "--submission", "s.json"}, "score p.zst: row 2: token 57 of its answer is 200", "expected 0 to 11")
	require.NoFileExists(t, "s.json")
}

// Large and strange files of answers are refused unread.
func TestScoreBoundsItsInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("a", 0, true))
	writeFile(t, "big.json", "")
	require.NoError(t, os.Truncate("big.json", 20<<30)) // sparse
	refused(t, []string{"--answers", "big.json", "--truth", "evaluation"}, "big.json has 21474836480 bytes, expected at most")
	refused(t, []string{"--answers", "evaluation", "--truth", "evaluation"}, "evaluation is a folder")
	writeFile(t, "sub.json", `{"a": []}`)
	require.NoError(t, os.Rename("big.json", "solutions.json"))
	refused(t, []string{"--answers", "sub.json", "--truth", "solutions.json"}, "solutions.json has 21474836480 bytes")
}

// T25: one demonstration and three tests go the whole way.
func TestT25OneDemonstrationThreeTests(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasks(t, "evaluation", toy("solo", 0, true, true, true))
	ok(t, "build-data --input evaluation --num-aug 4 --max-grid 10 --out data/solo")
	ok(t, "train --preset testing --data data/solo --steps 3 --global-batch-size 4 --threads 1 --run runs/solo")
	out, _ := ok(t, "eval --run runs/solo --threads 1")
	require.Contains(t, out, ": 15 rows in", "three tests of the task and of its four copies")
	doc := scored(t, "--per-task", "--submission", "sub.json")
	require.Equal(t, 3, doc.Headline.Outputs.Of)
	require.Equal(t, 1, doc.Headline.AllTests.Of)
	require.Equal(t, 3, doc.Coverage.Answered)
	require.Len(t, doc.Tasks[0].Tests, 3)
	for _, test := range doc.Tasks[0].Tests {
		require.Equal(t, 5, *test.Votes)
	}
	require.Equal(t, 3, strings.Count(readFile(t, "sub.json"), `"attempt_2"`))
	again := scored(t, "--answers", "sub.json", "--truth", "evaluation")
	require.Equal(t, 3, again.Headline.Outputs.Of)
	require.Equal(t, doc.TruthSHA256, again.TruthSHA256)
}
