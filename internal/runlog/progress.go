package runlog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deeploop/internal/wording"
)

// Item is a metric shown in the progress line.
type Item struct {
	Key     string // name in Metrics; left out of the line where absent
	Label   string
	Percent bool // the value is a fraction
}

// Progress tells a person how a run is doing: on a terminal in one line that
// is rewritten, otherwise in a line every few seconds. The zero value, and a
// nil Progress, say nothing. Several goroutines may report.
type Progress struct {
	W        io.Writer
	Terminal bool             // W is a terminal
	Width    func() int       // of the terminal; nil: unknown
	Quiet    bool             // only warnings
	Now      func() time.Time // the clock
	Every    time.Duration    // between lines without a terminal; 0 means 5 s
	Memory   func() uint64    // resident bytes; nil leaves it out
	Items    []Item           // metrics to show
	Unit     string           // what is counted per second; "" means tok
	// Speed says more about so many tokens per second, nothing with "".
	Speed func(tokens float64) string
	// Patience is how long a count stays unsaid.
	Patience time.Duration
	// Log, if set, takes the lines that stay. It calls Clear before it writes to
	// a terminal.
	Log *slog.Logger

	// Last, where above 0, is the step that ends this session before the total,
	// and Deadline, where set, the time that does.
	Last     int
	Deadline time.Time

	mu     sync.Mutex
	pace   pace
	mark   time.Time // when the last step or pause ended
	shown  time.Time // when the last line was written
	width  int       // of the line on the terminal
	sec    float64   // decaying sums over the last steps
	steps  float64
	tokens float64
	doing  doing
}

// decay of the sums per step: an average over about 20 steps.
const decay = 0.95

// Begin starts the clock of the first step, and of the first after a pause
// (an evaluation, a save).
func (p *Progress) Begin() {
	if p.off() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = p.Now()
}

// Step reports a finished step out of total. It also ends its clock and
// starts the next one's.
func (p *Progress) Step(step, total int, m Metrics, tokens int) {
	if p.off() {
		return
	}
	said := ""
	p.show(func(now time.Time) (string, bool) {
		if !p.mark.IsZero() {
			p.sec = p.sec*decay + now.Sub(p.mark).Seconds()
			p.steps = p.steps*decay + 1
			p.tokens = p.tokens*decay + float64(tokens)
			if text, each := p.pace.step(step, now.Sub(p.mark)); text != "" && step < p.last(total) {
				if left := p.left(now, step, total, each.Seconds()); left > worthSaying {
					said = fmt.Sprintf("%s, so %s to go", text, duration(left.Seconds()))
				}
			}
		}
		p.mark = now
		if !p.due(now, step == total) {
			return "", false
		}
		return p.stepLine(step, total, m), true
	})
	if said != "" {
		p.Notef("%s", said)
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
		if step < p.last(total) {
			parts = append(parts, "ETA "+duration(p.left(p.mark, step, total, p.sec/p.steps).Seconds()))
		}
	}
	return strings.Join(append(parts, p.memory()...), "  ")
}

// last is the step at which this session ends, of total.
func (p *Progress) last(total int) int {
	if p.Last > 0 {
		return min(p.Last, total)
	}
	return total
}

// left is for how long still, after this step of total, at so many seconds each.
func (p *Progress) left(now time.Time, step, total int, each float64) time.Duration {
	left := time.Duration(each * float64(p.last(total)-step) * float64(time.Second))
	if !p.Deadline.IsZero() {
		left = min(left, max(0, p.Deadline.Sub(now)))
	}
	return left
}

func (p *Progress) memory() []string {
	if p.Memory == nil {
		return nil
	}
	return []string{"mem " + short(float64(p.Memory())) + "B"}
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
	count := p.counter(func(done, total int64) string {
		return fmt.Sprintf("%s %d/%d  %.0f%%", what, done, total, share(done, total))
	},
		func(perSecond float64) string { return short(perSecond) + "/s" }, p.patience(0))
	return func(done, total int) { count(int64(done), int64(total)) }
}

// Bytes returns a function that reports how many bytes are done of some long
// work, or of one of its parts after the other.
func (p *Progress) Bytes() func(what string, done, total int64) {
	part, count := "", func(int64, int64) {}
	return func(what string, done, total int64) {
		if what != part {
			part, count = what, p.counter(func(done, total int64) string {
				return fmt.Sprintf("%s: %.0f%% of %s", what, share(done, total), wording.Bytes(uint64(total)))
			}, func(perSecond float64) string { return wording.Bytes(uint64(perSecond)) + "/s" }, p.patience(time.Second))
		}
		count(done, total)
	}
}

func (p *Progress) patience(least time.Duration) time.Duration {
	if p == nil {
		return least
	}
	return max(p.Patience, least)
}

func share(done, total int64) float64 { return 100 * float64(done) / float64(total) }

// counter shows what is done, how fast, and for how long still, of work that
// takes longer than patience.
func (p *Progress) counter(what func(done, total int64) string, rate func(perSecond float64) string, patience time.Duration) func(done, total int64) {
	if p.off() {
		return func(int64, int64) {}
	}
	start, begun := p.Now(), false
	return func(done, total int64) {
		if total <= 0 {
			return
		}
		p.show(func(now time.Time) (string, bool) {
			// What has been shown to begin is shown to end.
			if now.Sub(start) < patience || !p.due(now, begun && done >= total) {
				return "", false
			}
			begun = true
			parts := []string{what(done, total)}
			if seconds := now.Sub(start).Seconds(); done > 0 && seconds > 0 {
				parts = append(parts, rate(float64(done)/seconds))
				if done < total {
					parts = append(parts, "ETA "+duration(seconds/float64(done)*float64(total-done)))
				}
			}
			return strings.Join(append(parts, p.memory()...), "  "), true
		})
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
		p.keep(slog.LevelInfo, fmt.Sprintf(format, args...))
	}
}

// Warnf writes a line that stays, even in quiet runs.
func (p *Progress) Warnf(format string, args ...any) {
	if p != nil && p.W != nil {
		p.keep(slog.LevelWarn, fmt.Sprintf(format, args...))
	}
}

// Line shows a text of the caller's own, where one is due, until another line
// takes its place.
func (p *Progress) Line(text func() string) {
	if p.off() {
		return
	}
	p.show(func(now time.Time) (string, bool) {
		if !p.due(now, false) {
			return "", false
		}
		return strings.Join(append([]string{text()}, p.memory()...), "  "), true
	})
}

// Clear removes a line that is being rewritten.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *Progress) clear() {
	if p.width > 0 {
		fmt.Fprint(p.W, "\r", strings.Repeat(" ", p.width), "\r")
		p.width = 0
	}
}

// End finishes a line that is being rewritten, and what was said to be waited
// for.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited()
	if p.width > 0 {
		fmt.Fprintln(p.W)
		p.width = 0
	}
}

func (p *Progress) off() bool { return p == nil || p.W == nil || p.Quiet }

func (p *Progress) due(now time.Time, last bool) bool {
	every := p.every()
	if p.Terminal {
		every = 100 * time.Millisecond
	}
	if !last && !p.shown.IsZero() && now.Sub(p.shown) < every {
		return false
	}
	p.shown = now
	return true
}

func (p *Progress) every() time.Duration {
	if p.Every == 0 {
		return 5 * time.Second
	}
	return p.Every
}

// show writes the line that text returns, if any: the next one replaces it on a
// terminal. Something goes on, so nothing is waited for.
func (p *Progress) show(text func(now time.Time) (string, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, any := text(p.Now())
	if !any {
		return
	}
	p.waited()
	if p.Terminal {
		p.rewrite(s)
	} else {
		p.write(slog.LevelInfo, s)
	}
}

// rewrite shows text in the line that is rewritten, cut to one.
func (p *Progress) rewrite(s string) {
	n := utf8.RuneCountInString(s)
	if p.Width != nil {
		if most := p.Width() - 1; most > 0 && n > most {
			s, n = string([]rune(s)[:most]), most
		}
	}
	fmt.Fprint(p.W, "\r", s, strings.Repeat(" ", max(0, p.width-n)))
	p.width = n
}

// keep writes a line that stays.
func (p *Progress) keep(level slog.Level, s string) {
	if p.Terminal && p.Log != nil { // without the lock: it calls Clear
		p.write(level, s)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.write(level, s)
}

func (p *Progress) write(level slog.Level, s string) {
	if p.Log != nil {
		p.Log.Log(context.Background(), level, s)
		return
	}
	if level >= slog.LevelWarn {
		s = "warning: " + s
	}
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
