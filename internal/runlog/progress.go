package runlog

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Item is a metric shown in the progress line.
type Item struct {
	Key     string // name in Metrics; left out of the line where absent
	Label   string
	Percent bool // the value is a fraction
}

// Progress tells a person how a run is doing: on a terminal in one line that
// is rewritten, otherwise in a line every few seconds. The zero value, and a
// nil Progress, say nothing.
type Progress struct {
	W        io.Writer
	Terminal bool             // W is a terminal
	Quiet    bool             // only warnings
	Now      func() time.Time // the clock
	Every    time.Duration    // between lines without a terminal; 0 means 5 s
	Memory   func() uint64    // resident bytes; nil leaves it out
	Items    []Item           // metrics to show
	Unit     string           // what is counted per second; "" means tok
	// Speed says more about so many tokens per second, nothing with "".
	Speed func(tokens float64) string

	mark   time.Time // when the last step or pause ended
	shown  time.Time // when the last line was written
	width  int       // of the line on the terminal
	sec    float64   // decaying sums over the last steps
	steps  float64
	tokens float64
}

// decay of the sums per step: an average over about 20 steps.
const decay = 0.95

// Begin starts the clock of the first step, and of the first after a pause
// (an evaluation, a save).
func (p *Progress) Begin() {
	if p.off() {
		return
	}
	p.mark = p.Now()
}

// Step reports a finished step out of total. It also ends its clock and
// starts the next one's.
func (p *Progress) Step(step, total int, m Metrics, tokens int) {
	if p.off() {
		return
	}
	now := p.Now()
	if !p.mark.IsZero() {
		p.sec = p.sec*decay + now.Sub(p.mark).Seconds()
		p.steps = p.steps*decay + 1
		p.tokens = p.tokens*decay + float64(tokens)
	}
	p.mark = now
	if p.due(now, step == total) {
		p.line(p.stepLine(step, total, m))
	}
}

func (p *Progress) stepLine(step, total int, m Metrics) string {
	parts := []string{fmt.Sprintf("step %*d/%d", len(fmt.Sprint(total)), step, total)}
	parts = append(parts, p.values(m)...)
	if p.sec > 0 {
		unit := p.Unit
		if unit == "" {
			unit = "tok"
		}
		parts = append(parts, fmt.Sprintf("%s %s/s", short(p.tokens/p.sec), unit))
		if p.Speed != nil {
			if more := p.Speed(p.tokens / p.sec); more != "" {
				parts = append(parts, more)
			}
		}
		if step < total {
			parts = append(parts, "ETA "+duration(p.sec/p.steps*float64(total-step)))
		}
	}
	if p.Memory != nil {
		parts = append(parts, "mem "+short(float64(p.Memory()))+"B")
	}
	return strings.Join(parts, "  ")
}

func (p *Progress) values(m Metrics) []string {
	var parts []string
	for _, it := range p.Items {
		v, ok := m[it.Key]
		switch {
		case !ok:
		case it.Percent:
			parts = append(parts, fmt.Sprintf("%s %.1f%%", it.Label, 100*v))
		default:
			parts = append(parts, fmt.Sprintf("%s %.4g", it.Label, v))
		}
	}
	return parts
}

// Counter returns a function that reports how much of some other long work
// (an evaluation) is done.
func (p *Progress) Counter(what string) func(done, total int) {
	if p.off() {
		return func(int, int) {}
	}
	start, begun := p.Now(), false
	return func(done, total int) {
		now := p.Now()
		// What has been shown to begin is shown to end.
		if total <= 0 || !p.due(now, begun && done >= total) {
			return
		}
		begun = true
		s := fmt.Sprintf("%s %d/%d  %.0f%%", what, done, total, 100*float64(done)/float64(total))
		if done > 0 && done < total {
			s += "  ETA " + duration(now.Sub(start).Seconds()/float64(done)*float64(total-done))
		}
		p.line(s)
	}
}

// Metrics writes the shown items of an evaluation as a line that stays.
func (p *Progress) Metrics(what string, m Metrics) {
	if !p.off() {
		p.Notef("%s  %s", what, strings.Join(p.values(m), "  "))
	}
}

// Notef writes a line that stays; quiet runs leave it out.
func (p *Progress) Notef(format string, args ...any) {
	if !p.off() {
		p.keep(fmt.Sprintf(format, args...))
	}
}

// Warnf writes a line that stays, even in quiet runs.
func (p *Progress) Warnf(format string, args ...any) {
	if p != nil && p.W != nil {
		p.keep("warning: " + fmt.Sprintf(format, args...))
	}
}

// Line shows a text of the caller's own, where one is due, until another line
// takes its place.
func (p *Progress) Line(text func() string) {
	if !p.off() && p.due(p.Now(), false) {
		p.line(text())
	}
}

// Clear removes a line that is being rewritten.
func (p *Progress) Clear() {
	if p != nil && p.width > 0 {
		fmt.Fprint(p.W, "\r", strings.Repeat(" ", p.width), "\r")
		p.width = 0
	}
}

// End finishes a line that is being rewritten.
func (p *Progress) End() {
	if p != nil && p.width > 0 {
		fmt.Fprintln(p.W)
		p.width = 0
	}
}

func (p *Progress) off() bool { return p == nil || p.W == nil || p.Quiet }

func (p *Progress) due(now time.Time, last bool) bool {
	every := p.Every
	if every == 0 {
		every = 5 * time.Second
	}
	if p.Terminal {
		every = 100 * time.Millisecond
	}
	if !last && !p.shown.IsZero() && now.Sub(p.shown) < every {
		return false
	}
	p.shown = now
	return true
}

// line shows text that the next line replaces on a terminal.
func (p *Progress) line(s string) {
	if !p.Terminal {
		fmt.Fprintln(p.W, s)
		return
	}
	n := utf8.RuneCountInString(s)
	fmt.Fprint(p.W, "\r", s, strings.Repeat(" ", max(0, p.width-n)))
	p.width = n
}

func (p *Progress) keep(s string) {
	p.Clear()
	fmt.Fprintln(p.W, s)
}

// short writes a number with a unit prefix: 812M, 41.2k, 950.
func short(v float64) string {
	for _, u := range []struct {
		at  float64
		tag string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= 0.9995*u.at {
			return fmt.Sprintf("%.3g%s", max(1, min(v/u.at, 999)), u.tag)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

// duration writes seconds as 1d02h, 3h05m, 4m10s or 12s.
func duration(sec float64) string {
	s := int64(sec + 0.5)
	switch {
	case s >= 86400:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	case s >= 3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	case s >= 60:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%ds", s)
}
