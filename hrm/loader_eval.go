package hrm

import (
	"fmt"

	"deeploop/augment"
)

// EvalLoader gives the rows of a split in order, once: of every group the
// task as it is and the first augmented copies.
type EvalLoader struct {
	split  *augment.Split
	batch  int
	copies int // per group, the original included
	rows   int
	reader rowReader

	group, puzzle, example int // next row
}

// AllAugmentations makes an EvalLoader take every copy.
const AllAugmentations = -1

// NewEvalLoader returns a loader of batches of the given size. augmentations
// counts the copies of a task beside the original, 0 or more, or is
// AllAugmentations.
func NewEvalLoader(split *augment.Split, batch, augmentations int) (*EvalLoader, error) {
	if batch < 1 {
		return nil, fmt.Errorf("load evaluation rows: the batch size is %d, expected 1 or more", batch)
	}
	if augmentations < AllAugmentations {
		return nil, fmt.Errorf("load evaluation rows: %d augmentations, expected 0 or more, or %d for all", augmentations, AllAugmentations)
	}
	l := &EvalLoader{split: split, batch: batch, copies: augmentations + 1, reader: newRowReader(split)}
	if augmentations == AllAugmentations {
		l.copies = split.Puzzles()
	}
	for g := range split.Groups() {
		first, end := l.puzzles(g)
		l.rows += int(split.PuzzleIndices[end] - split.PuzzleIndices[first])
	}
	return l, nil
}

// puzzles returns the range of chosen puzzles of a group.
func (l *EvalLoader) puzzles(g int) (first, end int) {
	first, end = int(l.split.GroupIndices[g]), int(l.split.GroupIndices[g+1])
	return first, min(end, first+l.copies)
}

// Rows returns the number of rows in all batches together.
func (l *EvalLoader) Rows() int { return l.rows }

// Next puts the next rows into dst [batch rows of SeqLen tokens] and the
// number of each row in the split into index, and returns how many there are;
// 0 means the end. Rows behind them are padding: pad tokens, ignored labels,
// identifier 0, index -1.
func (l *EvalLoader) Next(dst Rows, index []int) (n int, err error) {
	s := l.split
	for n < l.batch && l.group < s.Groups() {
		first, end := l.puzzles(l.group)
		if l.puzzle < first {
			l.puzzle, l.example = first, int(s.PuzzleIndices[first])
		}
		switch {
		case l.puzzle >= end:
			l.group++
		case l.example >= int(s.PuzzleIndices[l.puzzle+1]):
			l.puzzle++ // the next puzzle's first example follows
		default:
			if err := l.reader.read(dst, n, l.example, l.puzzle); err != nil {
				return 0, err
			}
			index[n] = l.example
			l.example++
			n++
		}
	}
	for i := n; i < l.batch; i++ {
		t := s.SeqLen
		for j := i * t; j < (i+1)*t; j++ {
			dst.Inputs[j], dst.Labels[j] = augment.PadToken, IgnoreLabel
		}
		dst.IDs[i], index[i] = 0, -1
	}
	return n, nil
}
