package view

import (
	"math"
	"net/http"

	"deeploop/arc"
	"deeploop/voting"
)

// tally is what is kept of the votes of a predictions file: the best answers of
// each test input.
type tally struct {
	*Answers
	distinct [][]int // answers of each test input of each task, before the cut
	scores   []voting.Score
	coverage voting.Coverage
}

// ladder are the numbers of tries that scores are shown for.
var ladder = []int{1, 2, 3, 5, 10, 100, 1000}

// newTally cuts the votes to the best answers.
func newTally(a *Answers) *tally {
	t := &tally{Answers: a}
	results := a.Votes.Results()
	t.scores, t.coverage = voting.Ladder(results, ladder), voting.Cover(results)
	for i := range a.Votes.Tasks {
		tests := a.Votes.Tasks[i].Tests
		counts := make([]int, len(tests))
		for j := range tests {
			counts[j] = len(tests[j].Ranked)
			if counts[j] > keptAnswers {
				tests[j].Ranked = append([]voting.Candidate(nil), tests[j].Ranked[:keptAnswers]...)
			}
		}
		t.distinct = append(t.distinct, counts)
	}
	return t
}

// openVotes counts the votes of an item, one file at a time.
func (s *Server) openVotes(r *http.Request) (*item, *tally, error) {
	it, err := s.items.of(r, KindAnswers)
	if err != nil {
		return nil, nil, err
	}
	if s.Answers == nil {
		return nil, nil, notFound("predictions are not shown here")
	}
	it.mu.Lock()
	t := it.votes
	it.mu.Unlock()
	if t == nil {
		err = s.alone(r.Context(), func() error {
			it.mu.Lock()
			defer it.mu.Unlock()
			if it.votes == nil { // who waited finds it done
				a, err := s.Answers(r.Context(), it.Path, it.Data)
				if err != nil {
					return err
				}
				it.votes = newTally(a)
			}
			t = it.votes
			return nil
		})
	}
	if err == nil {
		s.items.used(it)
	}
	return it, t, err
}

// ratio is a voting.Ratio; Percent is null of nothing.
type ratio struct {
	Solved float64 `json:"solved"`
	Of     int     `json:"of"`
}

type scoreView struct {
	K        int   `json:"k"`
	AllTests ratio `json:"all_tests"`
	TaskMean ratio `json:"task_mean"`
	Outputs  ratio `json:"outputs"`
}

func scoreViews(scores []voting.Score) []scoreView {
	views := make([]scoreView, len(scores))
	for i, s := range scores {
		views[i] = scoreView{s.K, ratio(s.AllTests), ratio(s.TaskMean), ratio(s.Outputs)}
	}
	return views
}

// answerRow is a task of a predictions file in a list.
type answerRow struct {
	ID    string     `json:"id"`
	Split string     `json:"split,omitempty"`
	Side  int        `json:"side"`
	Tests []testRank `json:"tests"`
}

// testRank is where the right answer of a test input stands.
type testRank struct {
	Labelled bool `json:"labelled"`
	Votes    int  `json:"votes"`
	Rank     int  `json:"rank"` // from 1, 0 = not among the answers
}

func (t *tally) row(i int) (answerRow, error) {
	row := answerRow{ID: t.Tasks[i].ID, Split: t.Tasks[i].Split, Side: sideOf(&t.Tasks[i]), Tests: []testRank{}}
	for _, v := range t.Votes.Tasks[i].Tests {
		row.Tests = append(row.Tests, testRank{v.Pair.Labelled(), v.Votes, v.Rank})
	}
	return row, nil
}

func (s *Server) listAnswers(r *http.Request) (any, error) {
	_, t, err := s.openVotes(r)
	if err != nil {
		return nil, err
	}
	p, err := pageOf(r, len(t.Tasks), t.row)
	return struct {
		page[answerRow]
		Dataset    string          `json:"dataset"`    // folder
		Data       string          `json:"data"`       // its item
		Votes      int             `json:"votes"`      // rows
		Checkpoint string          `json:"checkpoint"` // "" where not known
		Step       int64           `json:"step"`
		Weights    string          `json:"weights"`
		HaltSteps  int             `json:"halt_steps"`
		Copies     int             `json:"augmentations"`
		Scores     []scoreView     `json:"scores"`
		Coverage   voting.Coverage `json:"coverage"`
		Curve      bool            `json:"curve"` // there is one
	}{
		p, t.Dataset, s.items.withPath(KindDataset, t.Dataset), t.Rows, t.Meta.Checkpoint, t.Meta.Step, t.Meta.Weights,
		t.Meta.HaltSteps, t.Meta.Augmentations, scoreViews(t.scores), t.coverage, s.Curve != nil,
	}, err
}

// pointView is a CurvePoint.
type pointView struct {
	N      int         `json:"n"`
	Scores []scoreView `json:"scores"`
}

func pointViews(points []CurvePoint) []pointView {
	views := make([]pointView, len(points))
	for i, p := range points {
		views[i] = pointView{p.N, scoreViews(p.Scores)}
	}
	return views
}

// answersCurve counts anew for each number of copies and of segments.
func (s *Server) answersCurve(r *http.Request) (any, error) {
	it, err := s.items.of(r, KindAnswers)
	if err != nil {
		return nil, err
	}
	if s.Curve == nil {
		return nil, notFound("there is no curve here")
	}
	it.mu.Lock()
	c := it.curve
	it.mu.Unlock()
	if c == nil {
		err = s.alone(r.Context(), func() error {
			c, err = s.Curve(r.Context(), it.Path, it.Data)
			it.mu.Lock()
			defer it.mu.Unlock()
			it.curve = c
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"copies": pointViews(c.Copies), "segments": pointViews(c.Segments)}, nil
}

// answerView is one answer.
type answerView struct {
	Grid  string   `json:"grid"`
	Votes int      `json:"votes"`
	MeanQ *float64 `json:"mean_q"` // null where it is not a number
	Right bool     `json:"right"`
}

// testView is a test input with its answers.
type testView struct {
	pairView
	testRank
	Distinct int          `json:"distinct"` // answers, of which the best are listed
	Answers  []answerView `json:"answers"`
	Row      *int         `json:"row,omitempty"` // of the task as it is, in the test split
}

func (s *Server) oneAnswer(r *http.Request) (any, error) {
	_, t, err := s.openVotes(r)
	if err != nil {
		return nil, err
	}
	n, err := number(r, "task", len(t.Tasks))
	if err != nil {
		return nil, err
	}
	row, err := t.row(n)
	if err != nil {
		return nil, err
	}
	v := struct {
		answerRow
		TrainPairs []pairView `json:"train_pairs"` // [] where the dataset does not have them
		TestViews  []testView `json:"test_views"`
	}{answerRow: row, TrainPairs: []pairView{}, TestViews: []testView{}}
	for j, test := range t.Votes.Tasks[n].Tests {
		tv := testView{
			pairView: pairView{gridText(test.Pair.Input), gridText(test.Pair.Output)}, testRank: row.Tests[j],
			Distinct: t.distinct[n][j], Answers: []answerView{},
		}
		for k, c := range test.Ranked {
			a := answerView{Grid: gridText(c.Grid()), Votes: c.Count, Right: k+1 == test.Rank}
			if q := c.MeanQ; !math.IsNaN(q) {
				a.MeanQ = &q
			}
			tv.Answers = append(tv.Answers, a)
		}
		v.TestViews = append(v.TestViews, tv)
	}
	pairs, rows := s.inDataset(t, n)
	v.TrainPairs = append(v.TrainPairs, pairViews(pairs)...)
	for j := range rows {
		v.TestViews[j].Row = &rows[j]
	}
	return v, nil
}

// inDataset finds the demonstrations of a task, and the rows of its test
// inputs, in the dataset where that is among the items and has them.
func (s *Server) inDataset(t *tally, n int) (demos []arc.Pair, rows []int) {
	id := s.items.withPath(KindDataset, t.Dataset)
	if id == "" {
		return nil, nil
	}
	s.items.mu.Lock()
	it := s.items.byID[id]
	s.items.mu.Unlock()
	d, _, err := it.openData()
	if err != nil || n >= d.Test.Groups() {
		return nil, nil
	}
	// The tasks are in the order of the test split's groups, one each, unless
	// several share an id.
	if d.Test.Groups() != len(t.Tasks) {
		return nil, nil
	}
	puzzle := int(d.Test.GroupIndices[n])
	first, end := int(d.Test.PuzzleIndices[puzzle]), int(d.Test.PuzzleIndices[puzzle+1])
	if end-first != len(t.Tasks[n].Test) {
		return nil, nil
	}
	for i := first; i < end; i++ {
		rows = append(rows, i)
	}
	if demos, err = demonstrations(d.Train, d.Test.PuzzleIdentifiers[puzzle]); err != nil {
		return nil, rows
	}
	return demos, rows
}
