package solve

import (
	"encoding/json"
	"errors"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/voting"
)

// Answers are what a task was answered, and what it took.
type Answers struct {
	ID    string `json:"id"`
	Tests []Test `json:"tests"`

	Side        int    `json:"canvas"`      // side of the canvas
	Batch       int    `json:"batch"`       // rows per step
	Parameters  int    `json:"parameters"`  // of the model, without task embeddings
	Identifiers int    `json:"identifiers"` // views of the task
	Models      int    `json:"models"`      // that voted
	Steps       int    `json:"steps"`       // training steps made, over all models
	End         string `json:"end"`         // what ended the training: EndSteps, EndTime, EndInterrupt
	// Loss is the token loss of a row over the last steps, Cells the share of
	// cells right and Exact that of rows all right, of those that halted; means
	// over the models.
	Loss  float64 `json:"loss"`
	Cells float64 `json:"cells"`
	Exact float64 `json:"exact"`
	// Treatments is Exact for each treatment of colours, over the models that
	// trained on it.
	Treatments   map[Treatment]float64 `json:"treatments"`
	TrainSeconds float64               `json:"train_seconds"`
	Seconds      float64               `json:"seconds"` // with model and votes
}

// Test is the answers to one test input.
type Test struct {
	Votes int         `json:"votes"`   // ballots counted
	Blank int         `json:"blank"`   // of them without an answer
	Top   []Candidate `json:"answers"` // the best, without the blank one
}

// Candidate is one answer.
type Candidate struct {
	Grid  arc.Grid
	Votes int
	MeanQ float64 // mean halt probability
}

// most is how many candidates of a test input are kept.
const most = 10

// testsOf takes what people want to see from counted votes.
func testsOf(votes voting.TaskVotes) []Test {
	tests := make([]Test, len(votes.Tests))
	for i, v := range votes.Tests {
		t := Test{Votes: v.Votes, Top: []Candidate{}}
		for _, c := range v.Ranked {
			switch {
			case c.Empty():
				t.Blank = c.Count
			case len(t.Top) < most:
				t.Top = append(t.Top, Candidate{c.Grid(), c.Count, c.MeanQ})
			}
		}
		tests[i] = t
	}
	return tests
}

// candidateJSON is the form of a Candidate.
type candidateJSON struct {
	Grid  json.RawMessage `json:"grid"`
	Votes int             `json:"votes"`
	MeanQ float64         `json:"mean_q"`
}

// MarshalJSON writes the grid as rows of colours.
func (c Candidate) MarshalJSON() ([]byte, error) {
	return json.Marshal(candidateJSON{c.Grid.AppendJSON(nil), c.Votes, c.MeanQ})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Candidate) UnmarshalJSON(raw []byte) error {
	var j candidateJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	var rows [][]int
	if err := json.Unmarshal(j.Grid, &rows); err != nil {
		return err
	}
	if len(rows) == 0 || len(rows) > arc.MaxSide || len(rows[0]) == 0 || len(rows[0]) > arc.MaxSide {
		return errors.New("a grid of another size than 1x1 to 30x30")
	}
	g := arc.NewGrid(len(rows), len(rows[0]))
	for r, row := range rows {
		if len(row) != g.Cols {
			return errors.New("a grid with rows of different lengths")
		}
		for i, v := range row {
			if v < 0 || v >= arc.NumColors {
				return errors.New("a grid with a colour other than 0 to 9")
			}
			g.Set(r, i, uint8(v))
		}
	}
	*c = Candidate{g, j.Votes, j.MeanQ}
	return nil
}

// What ends a training.
const (
	EndSteps     = "steps"
	EndTime      = "time"
	EndInterrupt = "interrupted"
)

// counted is a voting.Augmentations in which every ballot has an identifier of
// its own, its number plus 1.
type counted []ballot

// Task implements voting.Augmentations: there is one task.
func (c counted) Task(id int32) int {
	if id < 1 || int(id) > len(c) {
		return -1
	}
	return 0
}

// Undo implements voting.Augmentations.
func (c counted) Undo(id int32, g arc.Grid) arc.Grid {
	if a := c[id-1].aug; a != augment.Original() {
		return a.Undo(g)
	}
	return g
}
