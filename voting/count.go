package voting

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"deeploop/arc"
)

// Rows is a batch of predictions: n rows of S = side*side tokens.
type Rows struct {
	Identifiers []int32   // [n]; 0 = pad row, skipped
	QHalt       []float32 // [n] halt logits
	Preds       []uint8   // [n, S] arg-max tokens
	TestIndex   []int32   // [n] test input of the task, or nil
	Inputs      []uint8   // [n, S] input tokens; needed where TestIndex is nil
}

// Augmentations says what an identifier stands for. Both methods must allow
// calls from several goroutines.
type Augmentations interface {
	// Task returns the index of the identifier's task in the ground truth, or
	// -1 when it has none.
	Task(identifier int32) int
	// Undo returns the grid as it was before the identifier's augmentation. It
	// may return its argument but must not keep it.
	Undo(identifier int32, g arc.Grid) arc.Grid
}

// Counter gathers votes row by row. The order of the rows matters: it breaks
// ties.
type Counter struct {
	tasks   []arc.Task
	augs    Augmentations
	side    int
	workers int

	first   []int              // first[task] is the number of its first test input
	inputs  []map[string][]int // per task: test inputs by the key of their grid
	polls   []poll             // one a test input
	twins   map[twin]int       // rows seen of inputs that a task has twice
	rows    int                // counted rows
	pads    int                // skipped pad rows
	ballots []ballot           // scratch, one a row of a batch
}

// poll is the votes of one test input.
type poll struct {
	rows    int
	index   map[string]int // answer key -> place in answers
	answers []answer       // as first seen
}

type answer struct {
	key   string
	count int
	sumQ  float64
}

// ballot is a row after cropping and undoing.
type ballot struct {
	skip  bool
	test  int
	twins []int  // test inputs with the row's input, where the task has equal ones
	key   []byte // the answer
	err   error
}

// twin is an identifier with an input that its task has more than once.
type twin struct {
	identifier int32
	test       int
}

// NewCounter counts votes for the test inputs of tasks, on canvases of
// side x side tokens, with the given number of goroutines.
func NewCounter(tasks []arc.Task, augs Augmentations, side, workers int) *Counter {
	if side < 1 || workers < 1 {
		panic("voting: NewCounter needs side and workers of at least 1")
	}
	c := &Counter{tasks: tasks, augs: augs, side: side, workers: workers,
		first: make([]int, len(tasks)), inputs: make([]map[string][]int, len(tasks)), twins: map[twin]int{}}
	n := 0
	for i, t := range tasks {
		c.first[i] = n
		c.inputs[i] = make(map[string][]int, len(t.Test))
		for j, p := range t.Test {
			k := keyOf(p.Input)
			c.inputs[i][k] = append(c.inputs[i][k], n+j)
		}
		n += len(t.Test)
	}
	c.polls = make([]poll, n)
	for i := range c.polls {
		c.polls[i].index = map[string]int{}
	}
	return c
}

// Add counts a batch. A row that belongs to no test input of the ground truth
// is an *Error, as it is in the reference: predictions and tasks do not fit.
func (c *Counter) Add(b Rows) error {
	n, s := len(b.Identifiers), c.side*c.side
	if len(b.QHalt) != n || len(b.Preds) != n*s ||
		b.TestIndex != nil && len(b.TestIndex) != n || b.TestIndex == nil && len(b.Inputs) != n*s {
		panic("voting: Add of rows whose parts differ in length")
	}
	for len(c.ballots) < n {
		c.ballots = append(c.ballots, ballot{key: make([]byte, 0, 2+s)})
	}
	c.read(b, n)
	for i := range c.ballots[:n] {
		v := &c.ballots[i]
		switch {
		case v.err != nil:
			return &Error{fmt.Errorf("row %d: %w", c.rows+c.pads, v.err)}
		case v.skip:
			c.pads++
			continue
		}
		c.rows++
		test := v.test
		if v.twins != nil {
			// Equal test inputs of one task: an identifier's rows stand for
			// them in their order.
			k := twin{b.Identifiers[i], test}
			test = v.twins[c.twins[k]%len(v.twins)]
			c.twins[k]++
		}
		c.polls[test].vote(v.key, b.QHalt[i])
	}
	return nil
}

// read fills the ballots, in parallel.
func (c *Counter) read(b Rows, n int) {
	var wg sync.WaitGroup
	for w := range c.workers {
		lo, hi := n*w/c.workers, n*(w+1)/c.workers
		if lo == hi {
			continue
		}
		wg.Go(func() {
			canvas := make([]uint8, c.side*c.side)
			var key []byte
			for i := lo; i < hi; i++ {
				key = c.readRow(b, i, canvas, key)
			}
		})
	}
	wg.Wait()
}

// readRow fills ballot i; canvas and key are scratch.
func (c *Counter) readRow(b Rows, i int, canvas []uint8, key []byte) []byte {
	v := &c.ballots[i]
	v.skip, v.err, v.twins = false, nil, nil
	id := b.Identifiers[i]
	if id == 0 {
		v.skip = true
		return key
	}
	task := c.augs.Task(id)
	if task < 0 {
		v.err = fmt.Errorf("identifier %d belongs to no task of the ground truth: these predictions are of another dataset", id)
		return key
	}
	s := c.side * c.side
	if b.TestIndex == nil {
		g := c.augs.Undo(id, cropInto(canvas, b.Inputs[i*s:(i+1)*s], c.side))
		key = appendKey(key[:0], g)
		tests := c.inputs[task][string(key)]
		if tests == nil {
			v.err = fmt.Errorf("its input, a %dx%d grid after undoing the augmentation of identifier %d, is no test input of task %s: these predictions are of another dataset",
				g.Rows, g.Cols, id, c.tasks[task].ID)
			return key
		}
		if v.test = tests[0]; len(tests) > 1 {
			v.twins = tests
		}
	} else {
		t := int(b.TestIndex[i])
		if t < 0 || t >= len(c.tasks[task].Test) {
			v.err = fmt.Errorf("test index %d of task %s, which has %d test inputs: these predictions are of another dataset",
				t, c.tasks[task].ID, len(c.tasks[task].Test))
			return key
		}
		v.test = c.first[task] + t
	}
	preds := b.Preds[i*s : (i+1)*s]
	if at := slices.IndexFunc(preds, func(t uint8) bool { return t >= vocabulary }); at >= 0 {
		v.err = fmt.Errorf("token %d of its answer is %d, expected 0 to %d: the predictions are damaged or of another vocabulary", at, preds[at], vocabulary-1)
		return key
	}
	v.key = appendKey(v.key[:0], c.augs.Undo(id, cropInto(canvas, preds, c.side)))
	return key
}

func (p *poll) vote(key []byte, qHalt float32) {
	p.rows++
	at, ok := p.index[string(key)]
	if !ok {
		at = len(p.answers)
		k := string(key)
		p.index[k] = at
		p.answers = append(p.answers, answer{key: k})
	}
	p.answers[at].count++
	p.answers[at].sumQ += float64(sigmoid(qHalt))
}

// sigmoid is 1/(1+exp(-x)) with every step rounded to float32, as the
// reference computes it: halt logits beyond about 17 all give 1.
func sigmoid(x float32) float32 {
	return 1 / (1 + float32(math.Exp(-float64(x))))
}
