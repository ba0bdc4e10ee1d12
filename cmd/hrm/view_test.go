//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/cli"
	"deeploop/internal/predictions"
)

// shownRun makes a dataset of the sample tasks, a run and its predictions in
// the folders data/demo and runs/demo below a new working folder.
func shownRun(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"build-data --out data/demo --num-aug 2",
		"train --data data/demo --run runs/demo --preset testing --quiet",
		"eval --run runs/demo --quiet",
	} {
		hrmProgram.OK(t, line)
	}
}

// serveView runs hrm view as a process of its own and returns the address that
// it prints.
func serveView(t *testing.T, line string) string {
	t.Helper()
	c := hrmProgram.Process("view --addr 127.0.0.1:0 " + line)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		require.NoError(t, c.Wait(), "a signal ends it in order")
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(strings.TrimSpace(url), "/")
}

func getJSON[T any](t *testing.T, url string) (v T) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, "%s: %s", url, raw)
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

type shownItem struct{ ID, Kind, Name, Path, Run, Data string }

// What the page is told is what hrm score and the predictions file say.
func TestViewTellsWhatScoreDoes(t *testing.T) {
	shownRun(t)
	url := serveView(t, "--threads 1")
	items := getJSON[struct{ Items []shownItem }](t, url+"/api/items").Items
	byKind := map[string]shownItem{}
	for _, it := range items {
		byKind[it.Kind] = it
	}
	require.Len(t, items, 3, "the newest run with its predictions, and the newest dataset, which is its own")
	require.Equal(t, byKind["dataset"].ID, byKind["run"].Data)
	require.Equal(t, byKind["run"].ID, byKind["answers"].Run)

	code, out, errs := score("--json", "--per-task")
	require.Zero(t, code, errs)
	var doc report
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	type testView struct {
		Votes, Rank, Distinct int
		Answers               []struct {
			Votes int
			MeanQ *float64 `json:"mean_q"`
		}
		Row *int
	}
	list := getJSON[struct {
		Rows  []struct{ ID string }
		Votes int
	}](t, url+"/api/answers/"+byKind["answers"].ID)
	require.Equal(t, doc.Votes.Total, list.Votes)
	require.Len(t, list.Rows, len(doc.Tasks))
	type point struct {
		N      int
		Scores []struct {
			K       int
			Outputs struct {
				Solved float64
				Of     int
			}
		}
	}
	curve := getJSON[struct{ Copies, Segments []point }](t, url+"/api/answers/"+byKind["answers"].ID+"/curve")
	last := curve.Copies[len(curve.Copies)-1]
	require.Equal(t, 3, last.N)
	require.Len(t, curve.Segments, 1)
	require.Equal(t, 2, last.Scores[1].K)
	require.Equal(t, doc.Headline.Outputs.Solved, last.Scores[1].Outputs.Solved)
	require.Equal(t, doc.Headline.Outputs.Of, last.Scores[1].Outputs.Of)
	for i, task := range doc.Tasks {
		v := getJSON[struct {
			ID         string
			TrainPairs []any      `json:"train_pairs"`
			TestViews  []testView `json:"test_views"`
		}](t, url+"/api/answers/"+byKind["answers"].ID+"/"+itoa(i))
		require.Equal(t, task.ID, v.ID)
		require.NotEmpty(t, v.TrainPairs)
		for j, test := range task.Tests {
			got := v.TestViews[j]
			require.Equal(t, test.Rank, got.Rank)
			require.Equal(t, *test.Votes, got.Votes)
			require.Equal(t, *test.Answers, got.Distinct)
			for k, top := range test.Top {
				require.Equal(t, top.Votes, got.Answers[k].Votes)
				require.Equal(t, top.MeanQ, got.Answers[k].MeanQ)
			}
		}
	}

	// The model's last segment is the prediction of hrm eval.
	f, err := predictions.Open(byKind["answers"].Path)
	require.NoError(t, err)
	tokens, err := f.Preds()
	require.NoError(t, err)
	defer tokens.Close()
	preds := make([]uint8, f.Rows*f.SeqLen)
	_, err = tokens.Read(preds)
	require.NoError(t, err)
	for _, row := range []int{0, 5, f.Rows - 1} {
		trace := getJSON[struct{ Segments []struct{ Canvas string } }](t, url+"/api/model/"+byKind["run"].ID+"/test/"+itoa(row))
		require.Len(t, trace.Segments, hrm.PresetTesting().Arch.HaltMaxSteps)
		differ := 0
		for i, c := range []byte(trace.Segments[len(trace.Segments)-1].Canvas) {
			if c != ".|0123456789"[preds[row*f.SeqLen+i]] {
				differ++
			}
		}
		require.LessOrEqual(t, differ, f.SeqLen/50, "another batch size rounds otherwise, which may tip a tie")
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestViewRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("x.txt", nil, 0o644))
	require.Contains(t, hrmProgram.Fails(t, 2, "view none"), "view none: does not exist, expected a dataset")
	require.Contains(t, hrmProgram.Fails(t, 2, "view x.txt"), "of no known kind")
	require.Contains(t, hrmProgram.Fails(t, cli.ExitFailure, "view --addr 256.0.0.1:1"), "choose another --addr")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	msg := hrmProgram.Fails(t, cli.ExitFailure, "view --addr "+l.Addr().String())
	require.Equal(t, "hrm: listen on "+l.Addr().String()+": another program has this port (address already in use); end it, or choose another --addr (port 0 is any free one)\n", msg)
}

func TestReportRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("mine.html", []byte("<p>mine</p>"), 0o644))
	require.Contains(t, hrmProgram.Fails(t, 2, "report --out mine.html"), "is no report")
	require.Contains(t, hrmProgram.Fails(t, 2, "report --out mine.txt"), "does not end in .html")
	require.Contains(t, hrmProgram.Fails(t, 2, "report --most -1"), "--most is -1")
	require.Contains(t, hrmProgram.Fails(t, 2, "report --run none"), "view none: does not exist")
	out, errs := hrmProgram.OK(t, "report --out new.html --most 3")
	require.Contains(t, out, "wrote new.html")
	require.Contains(t, errs, "cut: samples: 3 of 44 tasks")
	out, _ = hrmProgram.OK(t, "report --out new.html")
	require.Contains(t, out, "replaced new.html")
}
