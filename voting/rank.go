package voting

import (
	"cmp"
	"slices"

	"deeploop/arc"
)

// Votes are the ranked answers of every test input of the ground truth, also
// of those without predictions.
type Votes struct {
	Tasks    []TaskVotes
	Rows     int // counted rows
	PadRows  int // rows with identifier 0, left out
	NaNHalts int // answers whose mean halt probability is not a number; they rank last among equals
}

// TaskVotes is one task.
type TaskVotes struct {
	ID    string
	Tests []TestVotes
}

// TestVotes is one test input.
type TestVotes struct {
	Pair   arc.Pair
	Votes  int         // rows
	Ranked []Candidate // best first
	Rank   int         // place of the right answer from 1, 0 = not among them or not known
}

// Candidate is one answer.
type Candidate struct {
	Count int     // rows that give it
	MeanQ float64 // mean of their halt probabilities
	key   string
}

// Grid returns the answer; 0x0 for a canvas that starts with no colour.
func (c Candidate) Grid() arc.Grid { return gridOf(c.key) }

// Empty reports whether the answer has no cell.
func (c Candidate) Empty() bool { return c.key[0] == 0 }

// Votes ranks what has been counted: by count, then by mean halt probability,
// both descending, then by the first row.
func (c *Counter) Votes() *Votes {
	v := &Votes{Tasks: make([]TaskVotes, len(c.tasks)), Rows: c.rows, PadRows: c.pads}
	for i, t := range c.tasks {
		tv := TaskVotes{ID: t.ID, Tests: make([]TestVotes, len(t.Test))}
		for j, p := range t.Test {
			poll := &c.polls[c.first[i]+j]
			ranked := poll.rank()
			for _, r := range ranked {
				if r.MeanQ != r.MeanQ {
					v.NaNHalts++
				}
			}
			tv.Tests[j] = TestVotes{Pair: p, Votes: poll.rows, Ranked: ranked, Rank: rankOf(p, ranked)}
		}
		v.Tasks[i] = tv
	}
	return v
}

func (p *poll) rank() []Candidate {
	ranked := make([]Candidate, len(p.answers))
	for i, a := range p.answers {
		ranked[i] = Candidate{Count: a.count, MeanQ: a.sumQ / float64(a.count), key: a.key}
	}
	slices.SortStableFunc(ranked, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.MeanQ, a.MeanQ)) // NaN is smallest
	})
	return ranked
}

// rankOf finds the right answer of a labelled pair.
func rankOf(p arc.Pair, ranked []Candidate) int {
	if !p.Labelled() {
		return 0
	}
	want := keyOf(p.Output)
	return 1 + slices.IndexFunc(ranked, func(c Candidate) bool { return c.key == want })
}

// Results returns what scoring needs to know.
func (v *Votes) Results() []TaskResult {
	results := make([]TaskResult, len(v.Tasks))
	for i, t := range v.Tasks {
		r := TaskResult{ID: t.ID, Tests: make([]TestResult, len(t.Tests))}
		for j, test := range t.Tests {
			r.Tests[j] = TestResult{Labelled: test.Pair.Labelled(), Answered: test.Votes > 0, Rank: test.Rank}
		}
		results[i] = r
	}
	return results
}
