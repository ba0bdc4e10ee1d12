package runlog

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Session is one line of sessions.jsonl: what happened when. It is never cut,
// so it tells how often a run was interrupted and how long it took.
type Session struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"` // start, resume, checkpoint, stop
	Step    int       `json:"step"`
	Seconds float64   `json:"seconds,omitempty"`  // since this session began
	TokensS float64   `json:"tokens_s,omitempty"` // of the training steps of this session
	Memory  uint64    `json:"memory_bytes,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// AppendSession adds a line to the file.
func AppendSession(path string, s Session) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("record the session: %w", err)
	}
	return f.Close()
}

// HoldsSessions reports whether the file at path is one of sessions.
func HoldsSessions(path string) bool {
	line, ok := firstLine(path)
	var s Session
	return ok && json.Unmarshal(line, &s) == nil && s.Event != "" && !s.Time.IsZero()
}
