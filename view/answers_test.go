package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/internal/predictions"
	"deeploop/voting"
)

// noTransform takes identifier n for task n-1 as it is.
type noTransform struct{}

func (noTransform) Task(id int32) int                 { return int(id) - 1 }
func (noTransform) Undo(_ int32, g arc.Grid) arc.Grid { return g }

// counted votes for one task with a 1x1 answer: colours 0 to 9 on canvases of
// 2x2, colour c with c+1 votes, and further answers with one vote each.
func counted(t *testing.T, extra int) *Answers {
	t.Helper()
	cell := func(v uint8) arc.Grid { return arc.Grid{Rows: 1, Cols: 1, Cells: []uint8{v}} }
	tasks := []arc.Task{{ID: "a", Test: []arc.Pair{{Input: cell(1), Output: cell(7)}}}, {ID: "b", Test: []arc.Pair{{Input: cell(1)}, {Input: cell(2), Output: cell(3)}}}}
	c := voting.NewCounter(tasks, noTransform{}, 3, 1)
	rows := voting.Rows{}
	vote := func(canvas ...uint8) {
		rows.Identifiers, rows.QHalt, rows.TestIndex = append(rows.Identifiers, 1), append(rows.QHalt, 0), append(rows.TestIndex, 0)
		rows.Preds = append(rows.Preds, canvas...)
	}
	for v := range uint8(10) {
		for range v + 1 {
			vote(v+2, 1, 0, 1, 0, 0, 0, 0, 0)
		}
	}
	for i := range extra {
		vote(uint8(i%10)+2, uint8(i/10)+2, 1, 1, 1, 0, 0, 0, 0)
	}
	require.NoError(t, c.Add(rows))
	return &Answers{Meta: predictions.Meta{Step: 3, Weights: "ema", HaltSteps: 4}, Rows: len(rows.QHalt), Dataset: "gone", Tasks: tasks, Votes: c.Votes()}
}

func TestAnswersAreRankedAndCut(t *testing.T) {
	s := serverOf(t, Options{Answers: func(context.Context, string, string) (*Answers, error) { return counted(t, 60), nil }}, Item{Kind: KindAnswers, Path: "x/p.zst"})
	list := got[struct {
		page[answerRow]
		Votes, Step int
		Scores      []scoreView
		Curve       bool
	}](t, s, "/api/answers/x?page=0")
	require.Equal(t, 115, list.Votes)
	require.Equal(t, 3, list.Step)
	require.False(t, list.Curve)
	refusedWith(t, s, "/api/answers/x/curve", 404, "no curve")
	require.Equal(t, []testRank{{true, 115, 3}}, list.Rows[0].Tests)
	require.Equal(t, []testRank{{false, 0, 0}, {true, 0, 0}}, list.Rows[1].Tests)
	for _, sc := range list.Scores {
		want := 0.0
		if sc.K >= 3 {
			want = 1
		}
		require.Equal(t, ratio{want, 2}, sc.AllTests, "at %d", sc.K)
	}
	one := got[struct {
		TestViews []testView `json:"test_views"`
	}](t, s, "/api/answers/x/0").TestViews[0]
	require.Equal(t, 70, one.Distinct)
	require.Len(t, one.Answers, keptAnswers)
	require.Equal(t, "9", one.Answers[0].Grid)
	require.Equal(t, 10, one.Answers[0].Votes)
	require.InDelta(t, .5, *one.Answers[0].MeanQ, 1e-9)
	require.True(t, one.Answers[2].Right)
	require.Equal(t, "7", one.Output)
	require.Nil(t, one.Row)
	refusedWith(t, s, "/api/answers/x/2", 404)
}

// Votes of the files looked at last are kept, and an error is tried again.
func TestVotesAreKeptForAFewFiles(t *testing.T) {
	calls := map[string]int{}
	fail := errors.New("not yet")
	o := Options{Answers: func(_ context.Context, path, _ string) (*Answers, error) {
		calls[path]++
		if fail != nil {
			return nil, fail
		}
		return counted(t, 0), nil
	}}
	var found []Item
	for i := range openAnswers + 2 {
		found = append(found, Item{Kind: KindAnswers, Path: fmt.Sprintf("%c/p.zst", 'a'+i)})
	}
	s := serverOf(t, o, found...)
	refusedWith(t, s, "/api/answers/a", 500, "not yet")
	fail = nil
	for range 3 {
		got[any](t, s, "/api/answers/a")
	}
	require.Equal(t, 2, calls["a/p.zst"])
	for i := range found {
		got[any](t, s, "/api/answers/"+string(rune('a'+i)))
	}
	require.Len(t, s.items.answers, openAnswers)
	a := s.items.byID["a"]
	require.Eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.votes == nil }, 5e9, 1e6)
	got[any](t, s, "/api/answers/a")
	require.Equal(t, 3, calls["a/p.zst"])
}

// A damaged file is said to be left out; alone it is an error.
func TestReportLeavesOutWhatIsDamaged(t *testing.T) {
	o := Options{Answers: func(context.Context, string, string) (*Answers, error) { return nil, errors.New("cut short") }}
	var b strings.Builder
	cuts, err := serverOf(t, o, Item{Kind: KindTasks}, Item{Kind: KindAnswers, Path: "x/p.zst"}).Report(t.Context(), &b, ReportOptions{Tasks: 50})
	require.NoError(t, err)
	require.Len(t, cuts, 1)
	require.Contains(t, cuts[0], "x/p.zst is left out: cut short")
	_, err = serverOf(t, o, Item{Kind: KindAnswers, Path: "x/p.zst"}).Report(t.Context(), &b, ReportOptions{Tasks: 50})
	require.ErrorContains(t, err, "cut short")
}

func TestReportIsOnePage(t *testing.T) {
	hostile := `</script><script>alert(1)</script><!--`
	o := Options{Version: hostile, Answers: func(context.Context, string, string) (*Answers, error) {
		a := counted(t, 0)
		a.Tasks[0].ID, a.Votes.Tasks[0].ID = hostile, hostile
		return a, nil
	}}
	s := serverOf(t, o, Item{Kind: KindTasks}, Item{Kind: KindAnswers, Path: "x/p.zst"})
	var b strings.Builder
	cuts, err := s.Report(t.Context(), &b, ReportOptions{Tasks: 5, Copies: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"samples: 5 of 44 tasks are shown in full"}, cuts)
	page := b.String()
	require.NotContains(t, page, "alert(1)</script>")
	require.NotContains(t, page, "<!--")
	require.Equal(t, 2, strings.Count(page, "</script>"))
	require.Contains(t, page, "Content-Security-Policy")
	require.NotContains(t, page, "\nimport ")
	require.NotContains(t, page, "\nexport ")
	for _, outside := range []string{"src=\"", "href=\"http", "url(http", "@import"} {
		require.NotContains(t, page, outside)
	}
	b.Reset()
	_, err = s.Report(t.Context(), &b, ReportOptions{Only: []string{"halo"}})
	require.NoError(t, err)
	require.Contains(t, b.String(), `"/api/tasks/samples/`)
	_, err = s.Report(t.Context(), &b, ReportOptions{Only: []string{"halo", "halp"}})
	require.EqualError(t, err, `no task is called "halp"; did you mean halo?`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Report(ctx, &b, ReportOptions{})
	require.Error(t, err)
}

// Every module is in the bundle, behind those it imports.
func TestBundleHasAllModules(t *testing.T) {
	entries, err := assetFiles.ReadDir("assets")
	require.NoError(t, err)
	place := map[string]int{}
	for i, m := range modules {
		place[m] = i
	}
	n := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".js") {
			continue
		}
		n++
		raw, err := asset(e.Name())
		require.NoError(t, err)
		require.Contains(t, place, e.Name())
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "import ") {
				_, from, ok := strings.Cut(line, " from './")
				require.True(t, ok, line)
				name := strings.TrimSuffix(strings.TrimSpace(from), "';")
				require.Less(t, place[name], place[e.Name()], "%s imports %s", e.Name(), name)
			}
		}
	}
	require.Equal(t, len(modules), n)
}
