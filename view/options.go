package view

import (
	"context"
	"log/slog"
	"time"

	"deeploop/arc"
	"deeploop/augment"
	"deeploop/hrm"
	"deeploop/internal/predictions"
	"deeploop/voting"
)

// Options are the settings of a server.
type Options struct {
	Version string           // of the program
	Now     func() time.Time // the clock, required
	Log     *slog.Logger     // failures of the server; nothing by default
	// Host is the name that the server is reached by beside this machine's own:
	// the host of its address.
	Host string

	// Answers counts the votes of a predictions file; nil where there are none
	// to show. data is the dataset's folder, or "" for the one the file names.
	Answers func(ctx context.Context, path, data string) (*Answers, error)
	// Curve scores a predictions file with fewer copies and segments; nil where
	// that is not shown.
	Curve func(ctx context.Context, path, data string) (*Curve, error)
	// Model opens the model of a run; nil where none can be opened. data is as
	// above.
	Model func(ctx context.Context, run, data string) (*Model, error)
}

// Answers are the counted votes of a predictions file.
type Answers struct {
	Meta    predictions.Meta
	Rows    int    // that voted
	Dataset string // folder of the ground truth
	// Tasks have the test pairs; Votes belong to them, in the same order.
	Tasks []arc.Task
	Votes *voting.Votes
}

// Curve is pass@K against what an evaluation costs.
type Curve struct {
	Copies   []CurvePoint // by the copies that vote, the task itself included
	Segments []CurvePoint // by the segments of a row, as far as files tell
}

// CurvePoint is the score of N copies or segments.
type CurvePoint struct {
	N      int
	Scores []voting.Score
}

// Model is an open model of a run with the dataset that it is of. The server
// closes it.
type Model struct {
	Probe      *hrm.Probe
	Data       *augment.Dataset
	Checkpoint string
	Step       int
	Weights    string // ema or raw
	Kernel     string
	Close      func()
}

// Limits of what is held and sent.
const (
	pageRows       = 500              // rows of a page of a list
	keptAnswers    = 50               // ranked answers of a test input that are kept
	maxExamples    = 64               // examples of a puzzle in one answer
	openAnswers    = 4                // predictions files whose votes are kept
	openTraces     = 8                // traced examples that are kept
	waiting        = 16               // requests that may wait for the model or a count
	maxConnections = 64               // open at once
	requestTimeout = 5 * time.Minute  // for a request, computing included
	writeTimeout   = 30 * time.Second // for an answer to leave
)
