package runlog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// told runs so many steps of so long each and returns the lines that say what a
// step takes.
func told(change func(*Progress, *clock), steps, total int, first, each time.Duration) []string {
	var b bytes.Buffer
	p, c := progress(&b)
	p.Every = time.Hour
	change(p, c)
	p.Begin()
	for step := 1; step <= steps; step++ {
		if step == 1 {
			c.at = c.at.Add(first)
		} else {
			c.at = c.at.Add(each)
		}
		p.Step(step, total, nil, 1)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "to go") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// What a step takes is said once, when it is known, with the time left.
func TestStepTimeIsToldOnce(t *testing.T) {
	same := func(*Progress, *clock) {}
	require.Equal(t, []string{"a step takes 1 s (mean of 3), so 1m36s to go"}, told(same, 90, 100, time.Second, time.Second))
	require.Equal(t, []string{"a step takes 200 ms (mean of 10), so 2m38s to go"}, told(same, 90, 800, 800*time.Millisecond, 200*time.Millisecond))
	require.Equal(t, []string{"the first step took 1m30s, so 2h28m to go"}, told(same, 5, 100, 90*time.Second, 90*time.Second))
	require.Empty(t, told(same, 10, 10, time.Second, time.Second), "little is left")
	require.Empty(t, told(func(p *Progress, _ *clock) { p.Quiet = true }, 90, 100, time.Second, time.Second))
}

// A session that ends before the schedule is told to.
func TestTimeLeftKnowsTheSessionsEnd(t *testing.T) {
	require.Equal(t, []string{"a step takes 1 s (mean of 3), so 46s to go"},
		told(func(p *Progress, _ *clock) { p.Last = 50 }, 50, 1000, time.Second, time.Second))
	require.Equal(t, []string{"a step takes 1 s (mean of 3), so 26s to go"},
		told(func(p *Progress, c *clock) { p.Deadline = c.at.Add(30 * time.Second) }, 30, 1000, time.Second, time.Second))
	var b bytes.Buffer
	p, c := progress(&b)
	p.Deadline, p.Last = c.at.Add(5*time.Second), 500
	p.Begin()
	c.at = c.at.Add(time.Second)
	p.Step(1, 1000, nil, 1)
	require.Contains(t, b.String(), "ETA 4s")
}
