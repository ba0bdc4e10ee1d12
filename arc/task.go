package arc

// Pair is one example: an input and its output. A test pair without a known
// output (unlabelled) has an empty Output.
type Pair struct {
	Input, Output Grid
}

// Labelled reports whether the output is known.
func (p Pair) Labelled() bool { return !p.Output.Empty() }

// Task is one ARC task.
type Task struct {
	// ID is the file stem, or the key in a combined file.
	ID string
	// File is where the task was read, for messages.
	File string
	// Split is the name of the folder or file group the task came from:
	// "training", "evaluation", a ConceptARC concept, or "".
	Split string
	// HoldOut says that the test pairs are kept out of training. As in the
	// reference it is true for a folder called "evaluation"; false for
	// "training" and ConceptARC; and true for single files, Kaggle files and
	// flat folders (one called "training" excepted).
	HoldOut bool
	// TestFirst says that the JSON object lists "test" before "train". The
	// reference builder appends examples in key order.
	TestFirst bool

	Train, Test []Pair
}
