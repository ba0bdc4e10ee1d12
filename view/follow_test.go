package view

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/runlog"
)

func metricLine(step int, loss string) string {
	return fmt.Sprintf(`{"step":%d,"event":"train","loss":%s}`+"\n", step, loss)
}

func TestFollowerReadsWhatIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := newFollower(path)
	require.NoError(t, f.update(), "no file yet")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		require.NoError(t, f.update())
	}
	values := func() []runlog.Number { return f.metrics["train"]["loss"].curve().Mean }
	a, b, c := metricLine(1, "1"), metricLine(2, "2"), metricLine(3, "3")
	write(a + b[:10])
	require.Equal(t, []runlog.Number{1}, values(), "the second line is being written")
	version := f.version()
	require.NoError(t, f.update())
	require.Equal(t, version, f.version(), "nothing is new")
	write(a + b)
	require.Equal(t, []runlog.Number{1, 2}, values())
	write(a + b + c)
	require.Equal(t, []runlog.Number{1, 2, 3}, values())

	// Resumed from step 1: cut, and on with other numbers.
	write(a)
	require.Equal(t, []runlog.Number{1}, values())
	write(a + b + c)
	b2, c2 := metricLine(2, "7"), metricLine(3, "8")
	require.NotEqual(t, version, f.version())
	write(a + b2 + c2 + metricLine(4, "9"))
	require.Equal(t, []runlog.Number{1, 7, 8, 9}, values(), "longer than before, yet read again")
	require.Equal(t, 4, f.step)

	write(a + "{broken}\n" + b)
	require.Equal(t, []runlog.Number{1}, values(), "as far as it goes")
	write(a + metricLine(2, `"NaN"`) + metricLine(3, `"Infinity"`) + metricLine(4, "0.5"))
	require.Equal(t, []runlog.Number{1, .5}, values())
	write(a + `{"step":9,"event":"later","x":1}` + "\n")
	require.Equal(t, 9, f.step, "events of a newer program are no error")
	require.NoError(t, os.Remove(path))
	require.NoError(t, f.update())
	require.Zero(t, f.step)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", maxLine+10)), 0o644))
	require.ErrorContains(t, f.update(), "more than")
}

// However many values come, few are kept, and their mean and extremes hold.
func TestSeriesIsThinnedOut(t *testing.T) {
	for _, n := range []int{1, maxBuckets, maxBuckets + 1, 10*maxBuckets + 77, 100000} {
		var s series
		sum := 0.0
		for i := 1; i <= n; i++ {
			v := math.Sin(float64(i)) + float64(i%97)
			s.add(i, v)
			sum += v
		}
		require.LessOrEqual(t, len(s.buckets), maxBuckets)
		require.GreaterOrEqual(t, len(s.buckets), min(n, maxBuckets/2))
		kept, count, last := 0.0, 0, 0
		for _, b := range s.buckets {
			kept += b.sum
			count += b.n
			require.Greater(t, b.first, last)
			require.GreaterOrEqual(t, b.last, b.first)
			require.LessOrEqual(t, b.low, b.sum/float64(b.n))
			require.GreaterOrEqual(t, b.high, b.sum/float64(b.n))
			require.Equal(t, (b.first-1)/s.width, (b.last-1)/s.width)
			last = b.last
		}
		require.Equal(t, n, count)
		require.Equal(t, n, last)
		require.InEpsilon(t, sum, kept, 1e-9)
	}
	var few series // a value every 1000 steps, as evaluations
	for i := 1000; i <= 50000; i += 1000 {
		few.add(i, 1)
	}
	require.Len(t, few.curve().Step, 50)
	require.Equal(t, runlog.Number(0.123457), short(0.12345678))
	require.Equal(t, runlog.Number(1e-300), short(1e-300))
	require.Equal(t, runlog.Number(-1234570000), short(-1234567890))
}

func TestRunAndItsCurves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	put("metrics.jsonl", metricLine(1, "2")+metricLine(2, "3")+`{"step":2,"event":"eval","loss":4}`+"\n")
	put("sessions.jsonl", strings.Repeat(`{"time":"2026-01-02T03:04:05Z","event":"checkpoint","step":1}`+"\n", 2000)+"half a li")
	put("config.yaml", "seed: 1\n")
	s := serverOf(t, Options{}, Item{Kind: KindRun, Path: dir})
	v := got[struct {
		Step     int
		Metrics  map[string][]string
		Sessions []json.RawMessage
		Config   string
	}](t, s, "/api/run/r")
	require.Equal(t, 2, v.Step)
	require.Equal(t, map[string][]string{"train": {"loss"}, "eval": {"loss"}}, v.Metrics)
	require.Len(t, v.Sessions, 20)
	require.Equal(t, "seed: 1\n", v.Config)
	type answer struct {
		Version string
		Same    bool
		Curves  map[string]map[string]struct {
			Step []int
			Mean []float64
		}
	}
	c := got[answer](t, s, "/api/run/r/curves?metric=loss&metric=none")
	require.Equal(t, []float64{2, 3}, c.Curves["train"]["loss"].Mean)
	require.Equal(t, []int{2}, c.Curves["eval"]["loss"].Step)
	require.True(t, got[answer](t, s, "/api/run/r/curves?metric=loss&since="+c.Version).Same)
	put("metrics.jsonl", metricLine(1, "2"))
	c = got[answer](t, s, "/api/run/r/curves?metric=loss&since="+c.Version)
	require.False(t, c.Same)
	require.Equal(t, []float64{2}, c.Curves["train"]["loss"].Mean)
}

func FuzzFollower(f *testing.F) {
	f.Add([]byte(metricLine(1, "2")), []byte(metricLine(2, `"NaN"`)))
	f.Add([]byte(`{"step":5,"event":"train","x":1e999}`+"\n"), []byte("\n\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		path := filepath.Join(t.TempDir(), "m")
		follow := newFollower(path)
		for _, b := range [][]byte{first, append(append([]byte(nil), first...), second...), second} {
			require.NoError(t, os.WriteFile(path, b, 0o644))
			require.NoError(t, follow.update())
			fresh := newFollower(path)
			require.NoError(t, fresh.update())
			require.Equal(t, fresh.lines, follow.lines)
			require.Equal(t, fresh.offset, follow.offset)
		}
	})
}
