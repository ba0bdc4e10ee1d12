package arc

import "strconv"

// AppendJSON appends the grid as JSON: an array of rows of numbers, without
// spaces. An empty grid is [].
func (g Grid) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for r := range g.Rows {
		if r > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		for c := range g.Cols {
			if c > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(dst, uint64(g.At(r, c)), 10)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// JSON returns the task as a task file, one pair a line, "train" before
// "test" unless TestFirst. An unlabelled pair has no "output".
func (t *Task) JSON() []byte {
	sections := []struct {
		name  string
		pairs []Pair
	}{{"train", t.Train}, {"test", t.Test}}
	if t.TestFirst {
		sections[0], sections[1] = sections[1], sections[0]
	}
	dst := []byte("{\n")
	for i, s := range sections {
		dst = append(dst, `"`+s.name+"\": [\n"...)
		for j, p := range s.pairs {
			dst = append(dst, ` {"input": `...)
			dst = p.Input.AppendJSON(dst)
			if p.Labelled() {
				dst = append(dst, `, "output": `...)
				dst = p.Output.AppendJSON(dst)
			}
			dst = append(dst, '}')
			if j < len(s.pairs)-1 {
				dst = append(dst, ',')
			}
			dst = append(dst, '\n')
		}
		dst = append(dst, ']')
		if i == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '\n')
	}
	return append(dst, "}\n"...)
}
