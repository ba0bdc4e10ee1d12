package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// Thing is what a path may hold.
type Thing string

// Things that commands take, in words.
const (
	ReasonerData Thing = "a dataset of hrm build-data"
	TextData     Thing = "a dataset of lm prepare"
	ReasonerRun  Thing = "a run of hrm train"
	ModelRun     Thing = "a run of lm train"
	Exported     Thing = "a model of lm export"
	ARCTasks     Thing = "tasks of ARC"
	PlainText    Thing = "text"
	Submission   Thing = "answers in Kaggle's form"
	TorchFile    Thing = "a file of PyTorch"
	Predictions  Thing = "predictions of hrm eval" // never found, only expected
)

// RunOf is a run of models of a kind.
func RunOf(kind string) Thing { return Thing("a run of " + kind + " train") }

// use says what to do with a thing at a path.
func (t Thing) use(path string) string {
	line := func(args ...string) string { return cli.ShellLine(args...) }
	switch t {
	case ReasonerData:
		return line("hrm", "train", "--data", path) + " trains on it"
	case TextData:
		return line("lm", "train", "--data", path) + " trains on it"
	case ReasonerRun:
		return line("hrm", "eval", "--run", path) + " evaluates it"
	case ModelRun:
		return line("lm", "eval", "--run", path) + " evaluates it"
	case Exported:
		return line("lm", "import", path, "--run", RunsFolder+"/imported") + " makes a run of it"
	case ARCTasks:
		return line("hrm", "build-data", "--input", path) + " makes a dataset of them"
	case Submission:
		return line("hrm", "score", "--answers", path, "--truth", "TASKS") + " scores them"
	case TorchFile:
		return line("hrm", "import", path) + " makes a run of a checkpoint"
	case PlainText:
		return line("lm", "prepare", "--input", path, "--out", DataFolder+"/text") + " makes a dataset of it"
	}
	return ""
}

// Instead explains a failure to open a path as the thing that was wanted: where
// the path holds another thing, the error says which, and which command takes
// it. Any other error stays as it is. did says what failed, as in "open
// dataset".
func Instead(err error, did, path string, want Thing) error {
	if err == nil || path == "" {
		return err
	}
	if other := Another(did, path, want); other != nil {
		return other
	}
	return err
}

// Another is an error where the path holds a thing that is known and not the
// one that is wanted, and says which command takes it; else nil.
func Another(did, path string, want Thing) error {
	have := look(path)
	if have == "" || have == want {
		return nil
	}
	if have == TorchFile && (want == Predictions || strings.HasPrefix(string(want), "a run of ") || want == Exported) {
		return nil // what opens those knows more of such files
	}
	text := fmt.Sprintf("%s: %s holds %s, expected %s", did, path, have, want)
	if have != PlainText || want == TextData { // else it is anything
		text += "; " + have.use(path)
	}
	return cli.Usagef("%s", text)
}

// look says what a path holds, "" where it is none of the things.
func look(path string) Thing {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		return lookFile(path)
	}
	in := func(name string) bool { _, err := os.Stat(filepath.Join(path, name)); return err == nil }
	switch {
	case in("train/dataset.json"):
		return ReasonerData
	case in("manifest.json") && in("tokenizer.json"):
		return TextData
	case in("model.safetensors") && in("config.json"):
		return Exported
	}
	if ck, err := checkpoint.OpenFound(path, checkpoint.LastSaved); err == nil {
		defer ck.Close()
		return RunOf(ck.Meta().Kind)
	}
	return lookBelow(path)
}

// lookFile tells tasks from other text.
func lookFile(path string) Thing {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "" // to open a pipe would wait
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err == nil && bytes.HasPrefix(head, []byte("PK\x03\x04")) && bytes.Contains(head, []byte("/data.pkl")) {
		return TorchFile
	}
	if err != nil || len(head) == 0 || bytes.IndexByte(head, 0) >= 0 {
		return ""
	}
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))) // less a byte order mark
	switch {
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '['):
		has := func(key string) bool { return bytes.Contains(head, []byte(`"`+key+`"`)) }
		switch {
		case has("train") && has("input"):
			return ARCTasks
		case has("attempt_1"):
			return Submission
		}
		return "" // some JSON
	case strings.EqualFold(filepath.Ext(path), ".json"):
		return "" // none, and what reads JSON says where it is wrong
	}
	for range utf8.UTFMax { // the end may be within a character
		if utf8.Valid(head) {
			return PlainText
		}
		head = head[:len(head)-1]
	}
	return ""
}

// lookBelow looks at the first file of the first folders for tasks. The folder
// itself may be a link.
func lookBelow(path string) (found Thing) {
	const enough = 200
	seen := 0
	stop := fmt.Errorf("seen enough")
	_ = filepath.WalkDir(path+string(filepath.Separator), func(p string, d fs.DirEntry, err error) error { // what cannot be read is no task
		if seen++; err != nil || seen > enough {
			return stop
		}
		if !d.IsDir() && strings.EqualFold(filepath.Ext(p), ".json") {
			raw, err := os.ReadFile(p)
			var task struct{ Train, Test json.RawMessage }
			if err == nil && json.Unmarshal(raw, &task) == nil && task.Train != nil && task.Test != nil {
				found = ARCTasks
			}
			return stop
		}
		return nil
	})
	return found
}
