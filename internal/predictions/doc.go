// Package predictions is the file between "hrm eval" and "hrm score": for every
// row of a test split the arg-max tokens and the halt logit.
//
// The file is a safetensors file inside a zstd stream
// (predictions.safetensors.zst; "zstd -d" gives the plain file, which is read
// as well). Its tensors, N rows of S tokens:
//
//	puzzle_identifiers  I32 [N]     identifier of the augmented task, 0 = pad row
//	q_halt_logits       F32 [N]     halt logit of the last pass
//	test_index          I32 [N]     which test input of the task, from 0 (optional)
//	preds               U8  [N, S]  arg-max tokens: 0 pad, 1 end, 2 to 11 colours
//	inputs              U8  [N, S]  the rows' input tokens (optional)
//	labels              U8  [N, S]  the rows' label tokens, 0 = ignored (optional)
//
// The names are those the reference evaluator saves, with preds in place of
// the logits. Rows keep the order of the dataset: ties between votes are
// broken by it. The header's metadata holds a Meta.
package predictions

import (
	"fmt"
	"strings"
)

// FileName is what an evaluation calls its predictions file.
const FileName = "predictions.safetensors.zst"

// AfterName is the file beside the predictions file path that holds the answers
// after fewer segments.
func AfterName(path string, segments int) string {
	stem, ending := path, ""
	for _, e := range []string{".zst", ".safetensors"} {
		if strings.HasSuffix(stem, e) {
			stem, ending = strings.TrimSuffix(stem, e), e+ending
		}
	}
	return fmt.Sprintf("%s-after-%d%s", stem, segments, ending)
}

// Tensor names.
const (
	tIdentifiers = "puzzle_identifiers"
	tQHalt       = "q_halt_logits"
	tTestIndex   = "test_index"
	tPreds       = "preds"
	tInputs      = "inputs"
	tLabels      = "labels"
)

// Error is an unreadable or foreign predictions file.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return "read predictions " + e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }
