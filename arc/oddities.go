package arc

import "fmt"

// OddPair names the one demonstration whose output size breaks what all others
// have in common: the size of their input, or one size for all outputs. It
// needs at least three demonstrations and is a hint for a person: public tasks
// have such slips, and no reader repairs them.
func (t *Task) OddPair() (hint string, found bool) {
	if len(t.Train) < 3 {
		return "", false
	}
	odd, count := 0, 0
	for i, p := range t.Train {
		if p.Output.Rows != p.Input.Rows || p.Output.Cols != p.Input.Cols {
			odd, count = i, count+1
		}
	}
	if count == 1 {
		p := t.Train[odd]
		return fmt.Sprintf("train[%d]: output is %dx%d, input %dx%d; all other demonstrations keep the size",
			odd, p.Output.Rows, p.Output.Cols, p.Input.Rows, p.Input.Cols), true
	}
	if count < len(t.Train) {
		return "", false
	}
	// All change the size: look for a size shared by all but one.
	for _, ref := range t.Train[:2] {
		count = 0
		for i, p := range t.Train {
			if p.Output.Rows != ref.Output.Rows || p.Output.Cols != ref.Output.Cols {
				odd, count = i, count+1
			}
		}
		if count == 1 {
			p := t.Train[odd]
			return fmt.Sprintf("train[%d]: output is %dx%d; in all other demonstrations it is %dx%d",
				odd, p.Output.Rows, p.Output.Cols, ref.Output.Rows, ref.Output.Cols), true
		}
	}
	return "", false
}
