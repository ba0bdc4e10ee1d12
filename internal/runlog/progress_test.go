package runlog

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a hand-moved clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func progress(w *bytes.Buffer) (*Progress, *clock) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return &Progress{W: w, Now: c.now, Memory: func() uint64 { return 812e6 }, Items: []Item{
		{Key: "loss", Label: "loss"}, {Key: "exact_accuracy", Label: "exact", Percent: true}, {Key: "gone", Label: "gone"},
	}}, c
}

func TestProgressInLines(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Begin()
	for step := 1; step <= 12; step++ {
		c.at = c.at.Add(time.Second)
		p.Step(step, 12, Metrics{"loss": 1.23456, "exact_accuracy": .125}, 2000)
	}
	require.Equal(t, `step  1/12  loss 1.235  exact 12.5%  2k tok/s  ETA 11s  mem 812MB
step  6/12  loss 1.235  exact 12.5%  2k tok/s  ETA 6s  mem 812MB
step 11/12  loss 1.235  exact 12.5%  2k tok/s  ETA 1s  mem 812MB
step 12/12  loss 1.235  exact 12.5%  2k tok/s  mem 812MB
`, b.String())
}

func TestProgressSaysMoreAboutSpeed(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Speed = func(tokens float64) string {
		if tokens < 1000 {
			return ""
		}
		return fmt.Sprintf("%.0f per minute", 60*tokens)
	}
	p.Begin()
	c.at = c.at.Add(time.Second)
	p.Step(1, 9, nil, 2000)
	c.at = c.at.Add(time.Hour)
	p.Step(9, 9, nil, 2000)
	require.Equal(t, "step 1/9  2k tok/s  120000 per minute  ETA 8s  mem 812MB\nstep 9/9  1.08 tok/s  mem 812MB\n", b.String())
}

func TestProgressOnATerminalRewritesOneLine(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Terminal, p.Memory = true, nil
	p.Begin()
	c.at = c.at.Add(time.Second)
	p.Step(1, 100, Metrics{"loss": 10.25}, 10)
	c.at = c.at.Add(time.Second)
	p.Step(2, 100, Metrics{"loss": 1}, 10)
	c.at = c.at.Add(time.Millisecond)
	p.Step(3, 100, nil, 10) // too soon to show
	p.Notef("saved")
	p.Step(100, 100, nil, 10)
	p.End()
	p.End()
	out := b.String()
	require.Equal(t, "\rstep   1/100  loss 10.25  10 tok/s  ETA 1m39s"+
		"\rstep   2/100  loss 1  10 tok/s  ETA 1m38s    ", out[:strings.Index(out, "\r  ")])
	require.Contains(t, out, "\rsaved\n")
	require.Equal(t, 2, strings.Count(out, "\n"))
}

func TestPausesDoNotCountAsSpeed(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Every = time.Nanosecond
	p.Begin()
	c.at = c.at.Add(time.Second)
	p.Step(1, 9, nil, 100)
	count := p.Counter("evaluate")
	c.at = c.at.Add(30 * time.Second)
	count(10, 40)
	c.at = c.at.Add(90 * time.Second)
	count(40, 40)
	p.Begin()
	c.at = c.at.Add(time.Second)
	p.Step(2, 9, nil, 100)
	require.Contains(t, b.String(), "evaluate 10/40  25%  0.333/s  ETA 1m30s  mem 812MB\nevaluate 40/40  100%  0.333/s  mem 812MB\n")
	require.Contains(t, b.String(), "step 2/9  100 tok/s  ETA 7s")
}

// Without a terminal the last line of a count is its end, however soon it
// follows.
func TestCounterShowsItsEnd(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	count := p.Counter("predicting")
	for done := 1; done <= 12; done++ {
		c.at = c.at.Add(time.Second)
		count(done, 12)
	}
	require.Equal(t, `predicting 1/12  8%  1/s  ETA 11s  mem 812MB
predicting 6/12  50%  1/s  ETA 6s  mem 812MB
predicting 11/12  92%  1/s  ETA 1s  mem 812MB
predicting 12/12  100%  1/s  mem 812MB
`, b.String())
}

func TestQuietOnlyWarns(t *testing.T) {
	var b bytes.Buffer
	p, _ := progress(&b)
	p.Quiet = true
	p.Begin()
	p.Step(1, 1, nil, 1)
	p.Counter("evaluate")(1, 2)
	p.Metrics("evaluation", Metrics{"loss": 1})
	p.Notef("saved")
	p.Warnf("disk is %s", "slow")
	p.End()
	require.Equal(t, "warning: disk is slow\n", b.String())
	for _, silent := range []*Progress{nil, {}} {
		silent.Begin()
		silent.Step(1, 1, nil, 1)
		silent.Counter("evaluate")(1, 2)
		silent.Metrics("x", nil)
		silent.Notef("x")
		silent.Warnf("x")
		silent.End()
	}
}

func TestEvaluationLine(t *testing.T) {
	var b bytes.Buffer
	p, _ := progress(&b)
	p.Metrics("evaluation at step 7", Metrics{"loss": .5, "exact_accuracy": 1, "other": 3})
	require.Equal(t, "evaluation at step 7  loss 0.5  exact 100.0%\n", b.String())
}

func TestNumbersForPeople(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 950: "950", 999.9: "1k", 41234: "41.2k", 812e6: "812M", 999.9e6: "1G", 1.8e9: "1.8G", 2e12: "2T"} {
		require.Equal(t, want, short(v))
	}
	for v, want := range map[float64]string{0.4: "0s", 59.6: "1m00s", 3599: "59m59s", 3600: "1h00m", 90061: "1d01h"} {
		require.Equal(t, want, duration(v))
	}
}

func TestProgressLinesOfTheCaller(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &Progress{W: &b, Terminal: true, Now: func() time.Time { return now }}
	p.Line(func() string { return "one" })
	p.Line(func() string { panic("not due") })
	now = now.Add(time.Second)
	p.Line(func() string { return "a" })
	p.Clear()
	p.Clear()
	require.Equal(t, "\rone\ra  \r \r", b.String())
	(*Progress)(nil).Line(func() string { panic("nobody looks") })
	(*Progress)(nil).Clear()
}

// A count that ends within the patience says nothing.
func TestPatience(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Patience = time.Second
	count := p.Counter("counting")
	c.at = c.at.Add(999 * time.Millisecond)
	count(1, 2)
	require.Empty(t, b.String())
	c.at = c.at.Add(time.Millisecond)
	count(1, 2)
	require.Equal(t, "counting 1/2  50%  1/s  ETA 1s  mem 812MB\n", b.String())
}

func TestBytesOfPartsOfTheWork(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Every, p.Memory = time.Nanosecond, nil
	show := p.Bytes()
	for _, part := range []string{"counting", "writing"} {
		show(part, 0, 4e9)
		c.at = c.at.Add(2 * time.Second)
		show(part, 1e9, 4e9)
		c.at = c.at.Add(6 * time.Second)
		show(part, 4e9, 4e9)
	}
	require.Equal(t, `counting: 25% of 4.00 GB  500.0 MB/s  ETA 6s
counting: 100% of 4.00 GB  500.0 MB/s
writing: 25% of 4.00 GB  500.0 MB/s  ETA 6s
writing: 100% of 4.00 GB  500.0 MB/s
`, b.String())
}

// What is waited for is said seldom without a terminal, and no more once
// something else is.
func TestWaitingInLines(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Doing("reading")
	stop := p.doing.stop
	for range 41 {
		c.at = c.at.Add(time.Second)
		p.waiting(stop)
	}
	require.Equal(t, "reading  5s  mem 812MB\nreading  10s  mem 812MB\nreading  20s  mem 812MB\nreading  40s  mem 812MB\n", b.String())
	p.Doing("writing")
	c.at = c.at.Add(time.Hour)
	p.waiting(stop)
	require.NotContains(t, b.String(), "1h")
	stop = p.doing.stop
	p.Step(1, 2, nil, 0)
	p.waiting(stop)
	p.Doing("saving")
	stop = p.doing.stop
	c.at = c.at.Add(time.Hour)
	p.End()
	p.waiting(stop)
	require.NotContains(t, b.String(), "writing")
	require.NotContains(t, b.String(), "saving")
}

func TestWaitingOnATerminal(t *testing.T) {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Terminal, p.Memory = true, nil
	p.Doing("reading")
	p.waiting(p.doing.stop)
	require.Empty(t, b.String(), "not worth a word yet")
	c.at = c.at.Add(2 * time.Second)
	p.waiting(p.doing.stop)
	p.Doing("writing")
	c.at = c.at.Add(3 * time.Second)
	p.waiting(p.doing.stop)
	p.End()
	p.End()
	require.Equal(t, "\rreading  2s\r           \r\rwriting  3s\r           \r", b.String(), "nothing stays")
}

// The ticks of what is waited for come by themselves.
func TestWaitingTicks(t *testing.T) {
	b := &syncBuffer{}
	p := &Progress{W: b, Every: time.Millisecond, Now: time.Now}
	p.Doing("reading")
	require.Eventually(t, func() bool { return strings.Contains(b.String(), "reading  ") }, 10*time.Second, 10*time.Millisecond)
	p.End()
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestLinesAreCutToTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p, _ := progress(&b)
	p.Terminal, p.Memory, p.Width = true, nil, func() int { return 6 }
	p.Line(func() string { return "grün und gelb" })
	require.Equal(t, "\rgrün ", b.String())
}

// Lines that stay go to the log, which clears the line that does not.
func TestLinesThatStayGoToTheLog(t *testing.T) {
	var b bytes.Buffer
	p, _ := progress(&b)
	p.Terminal, p.Memory = true, nil
	p.Log = slog.New(slog.NewTextHandler(clearing{p, &b}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	p.Line(func() string { return "ab" })
	p.Notef("saved")
	p.Warnf("full")
	require.Equal(t, "\rab\r  \rlevel=INFO msg=saved\nlevel=WARN msg=full\n", b.String())
}

type clearing struct {
	p *Progress
	w io.Writer
}

func (c clearing) Write(b []byte) (int, error) {
	c.p.Clear()
	return c.w.Write(b)
}
