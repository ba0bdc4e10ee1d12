package runlog

import (
	"bytes"
	"fmt"
	"strings"
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
	require.Contains(t, b.String(), "evaluate 10/40  25%  ETA 1m30s\nevaluate 40/40  100%\n")
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
	require.Equal(t, "predicting 1/12  8%  ETA 11s\npredicting 6/12  50%  ETA 6s\npredicting 11/12  92%  ETA 1s\npredicting 12/12  100%\n", b.String())
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
