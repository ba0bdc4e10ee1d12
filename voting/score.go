package voting

// TaskResult is how one task of the ground truth was answered.
type TaskResult struct {
	ID    string       `json:"id"`
	Tests []TestResult `json:"tests"`
}

// TestResult is how one test input was answered.
type TestResult struct {
	Labelled bool `json:"labelled"` // the right output is known
	Answered bool `json:"answered"` // there is an answer
	Rank     int  `json:"rank"`     // place of the right answer from 1, 0 = not among the answers
}

func (t TestResult) solved(k int) bool { return t.Labelled && t.Rank > 0 && t.Rank <= k }

// Ratio is a share of a whole that comes from the ground truth.
type Ratio struct {
	Solved float64 // tasks or outputs; a fraction for a mean over tasks
	Of     int
}

// Percent is 100 * Solved / Of, 0 of nothing.
func (r Ratio) Percent() float64 {
	if r.Of == 0 {
		return 0
	}
	return r.Solved / float64(r.Of) * 100
}

// Score is one rung of the ladder: what counts as solved when the K best
// answers of each test input may be tried. Unlabelled test inputs, and tasks
// that have no other, are in no denominator; missing answers are wrong.
type Score struct {
	K int
	// AllTests counts tasks all of whose test inputs are solved (the reference
	// HRM evaluator, and the wording of both ARC-AGI read-me files).
	AllTests Ratio
	// TaskMean averages over tasks the fraction of test inputs solved
	// (arc-agi-benchmarking and TRM).
	TaskMean Ratio
	// Outputs counts solved test inputs (Kaggle's ARC Prize).
	Outputs Ratio
}

// ScoreAt scores results with K answers per test input.
func ScoreAt(results []TaskResult, k int) Score {
	s := Score{K: k}
	for _, task := range results {
		labelled, solved := 0, 0
		for _, t := range task.Tests {
			if t.Labelled {
				labelled++
			}
			if t.solved(k) {
				solved++
			}
		}
		if labelled == 0 {
			continue
		}
		s.AllTests.Of++
		s.TaskMean.Of++
		s.Outputs.Of += labelled
		if solved == labelled {
			s.AllTests.Solved++
		}
		s.TaskMean.Solved += float64(solved) / float64(labelled)
		s.Outputs.Solved += float64(solved)
	}
	return s
}

// Ladder scores results at every K.
func Ladder(results []TaskResult, ks []int) []Score {
	scores := make([]Score, len(ks))
	for i, k := range ks {
		scores[i] = ScoreAt(results, k)
	}
	return scores
}

// Coverage says how much of the ground truth has answers.
type Coverage struct {
	Tasks         int         `json:"tasks"`
	TasksAnswered int         `json:"tasks_answered"` // with an answer to every test input
	TestInputs    int         `json:"test_inputs"`
	Answered      int         `json:"test_inputs_answered"`
	Unlabelled    int         `json:"test_inputs_unlabelled"` // in no denominator
	MissingTasks  []string    `json:"missing_tasks"`          // without any answer
	MissingInputs []TestInput `json:"missing_test_inputs"`    // of tasks answered in part
}

// TestInput names a test input.
type TestInput struct {
	Task  string `json:"task"`
	Index int    `json:"index"`
}

// Cover measures the coverage.
func Cover(results []TaskResult) Coverage {
	c := Coverage{Tasks: len(results), MissingTasks: []string{}, MissingInputs: []TestInput{}}
	for _, task := range results {
		var missing []TestInput
		for i, t := range task.Tests {
			c.TestInputs++
			if !t.Labelled {
				c.Unlabelled++
			}
			if t.Answered {
				c.Answered++
			} else {
				missing = append(missing, TestInput{task.ID, i})
			}
		}
		switch {
		case len(missing) == 0:
			c.TasksAnswered++
		case len(missing) == len(task.Tests):
			c.MissingTasks = append(c.MissingTasks, task.ID)
		default:
			c.MissingInputs = append(c.MissingInputs, missing...)
		}
	}
	return c
}
