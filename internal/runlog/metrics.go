package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strings"
)

// Metrics are named numbers of one step or evaluation. NaN and infinities are
// allowed.
type Metrics map[string]float64

// Events of metrics.jsonl.
const (
	Train = "train"
	Eval  = "eval"
)

// Line is one line of metrics.jsonl: an object with "step", "event" and the
// metrics, sorted by name. JSON has no NaN: it is written as the string
// "NaN", infinities as "Infinity" and "-Infinity".
type Line struct {
	Step   int
	Event  string
	Values Metrics
}

// MarshalJSON writes the line in its canonical form.
func (l Line) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	event, err := json.Marshal(l.Event)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, `{"step":%d,"event":%s`, l.Step, event)
	names := make([]string, 0, len(l.Values))
	for n := range l.Values {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		if n == "step" || n == "event" {
			return nil, fmt.Errorf("write metrics: a metric cannot be called %s", n)
		}
		key, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		b.WriteByte(',')
		b.Write(key)
		b.WriteByte(':')
		b.WriteString(number(l.Values[n]))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Number is a number in a JSON document as Line writes it: one that is not
// finite is a string.
type Number float64

// MarshalJSON writes the number.
func (n Number) MarshalJSON() ([]byte, error) { return []byte(number(float64(n))), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	if v, ok := special[strings.Trim(string(b), `"`)]; ok && b[0] == '"' {
		*n = Number(v)
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// special are the names of numbers that JSON does not have.
var special = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

// Numbers converts a list.
func Numbers(v []float64) []Number {
	n := make([]Number, len(v))
	for i, x := range v {
		n[i] = Number(x)
	}
	return n
}

func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return `"NaN"`
	case math.IsInf(v, 1):
		return `"Infinity"`
	case math.IsInf(v, -1):
		return `"-Infinity"`
	}
	b, _ := json.Marshal(v) // finite: cannot fail
	return string(b)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Line) UnmarshalJSON(b []byte) error {
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	step, ok := m["step"].(float64)
	event, ok2 := m["event"].(string)
	if !ok || !ok2 {
		return errors.New("a line of metrics needs step and event")
	}
	*l = Line{Step: int(step), Event: event, Values: Metrics{}}
	delete(m, "step")
	delete(m, "event")
	for n, v := range m {
		switch v := v.(type) {
		case float64:
			l.Values[n] = v
		case string:
			f, ok := special[v]
			if !ok {
				return fmt.Errorf("metric %s is %q", n, v)
			}
			l.Values[n] = f
		default:
			return fmt.Errorf("metric %s is not a number", n)
		}
	}
	return nil
}

// Log appends to metrics.jsonl.
type Log struct {
	f    *os.File
	last int
}

// Open opens the metrics of a run for appending after cutting the file before
// the first line that keep refuses or that is incomplete: pass a keep that
// accepts what the resumed checkpoint has seen, or nil to start afresh.
func Open(path string, keep func(Line) bool) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	l := &Log{f: f}
	if err := l.cut(keep); err != nil {
		f.Close()
		return nil, fmt.Errorf("open metrics %s: %w", path, err)
	}
	return l, nil
}

func (l *Log) cut(keep func(Line) bool) error {
	end := int64(0)
	if keep != nil {
		err := scan(l.f, func(line Line, size int64) bool {
			if !keep(line) {
				return false
			}
			end += size
			l.last = line.Step
			return true
		})
		if err != nil && !errors.Is(err, errPartial) {
			return err
		}
	}
	if err := l.f.Truncate(end); err != nil {
		return err
	}
	_, err := l.f.Seek(end, io.SeekStart)
	return err
}

// LastStep is the step of the last line, 0 without one.
func (l *Log) LastStep() int { return l.last }

// Write appends one line.
func (l *Log) Write(step int, event string, m Metrics) error {
	b, err := json.Marshal(Line{step, event, m})
	if err != nil {
		return err
	}
	if _, err := l.f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	l.last = step
	return nil
}

// Sync makes all lines durable.
func (l *Log) Sync() error { return l.f.Sync() }

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

// Read returns all complete lines of a metrics file.
func Read(path string) ([]Line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer f.Close()
	var lines []Line
	err = scan(f, func(l Line, _ int64) bool { lines = append(lines, l); return true })
	if err != nil && !errors.Is(err, errPartial) {
		return nil, fmt.Errorf("read metrics %s: %w", path, err)
	}
	return lines, nil
}

// Holds reports whether the file at path is one of metrics: its first line
// reads as one.
func Holds(path string) bool {
	line, ok := firstLine(path)
	var l Line
	return ok && json.Unmarshal(line, &l) == nil
}

// firstLine returns the first line of a regular file, if that is complete and
// not huge.
func firstLine(path string) ([]byte, bool) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, false
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	head := make([]byte, 1<<16)
	n, _ := io.ReadFull(f, head) // a short file is no error here
	line, _, ok := bytes.Cut(head[:n], []byte{'\n'})
	return line, ok
}

var errPartial = errors.New("incomplete line")

// scan calls yield for every line until it returns false. A last line that
// does not end, or any that cannot be parsed, ends it with errPartial.
func scan(r io.Reader, yield func(Line, int64) bool) error {
	rest := []byte{}
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			var l Line
			if json.Unmarshal(rest[:i], &l) != nil {
				return errPartial
			}
			if !yield(l, int64(i)+1) {
				return nil
			}
			rest = rest[i+1:]
		}
		if err == io.EOF {
			if len(rest) > 0 {
				return errPartial
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
