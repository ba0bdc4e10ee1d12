package runlog

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "metrics.jsonl") }

func content(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func written(t *testing.T, path string) {
	l, err := Open(path, nil)
	require.NoError(t, err)
	for step := 1; step <= 3; step++ {
		require.NoError(t, l.Write(step, Train, Metrics{"loss": 1 / float64(step), "accuracy": 0}))
	}
	require.NoError(t, l.Write(3, Eval, Metrics{"loss": math.NaN(), "up": math.Inf(1), "down": math.Inf(-1)}))
	require.Equal(t, 3, l.LastStep())
	require.NoError(t, l.Sync())
	require.NoError(t, l.Close())
}

func TestLines(t *testing.T) {
	path := file(t)
	written(t, path)
	require.Equal(t, `{"step":1,"event":"train","accuracy":0,"loss":1}
{"step":2,"event":"train","accuracy":0,"loss":0.5}
{"step":3,"event":"train","accuracy":0,"loss":0.3333333333333333}
{"step":3,"event":"eval","down":"-Infinity","loss":"NaN","up":"Infinity"}
`, content(t, path))
	for _, line := range strings.Split(strings.TrimSpace(content(t, path)), "\n") {
		require.True(t, json.Valid([]byte(line)), "every line is JSON, also with NaN")
	}
	lines, err := Read(path)
	require.NoError(t, err)
	require.Len(t, lines, 4)
	require.Equal(t, Line{2, Train, Metrics{"accuracy": 0, "loss": .5}}, lines[1])
	require.Equal(t, 1.0/3, lines[2].Values["loss"], "numbers come back exactly")
	require.True(t, math.IsNaN(lines[3].Values["loss"]))
	require.Equal(t, math.Inf(-1), lines[3].Values["down"])
}

func TestOpenCutsAtTheResumedStep(t *testing.T) {
	whole := file(t)
	written(t, whole)
	all := strings.SplitAfter(content(t, whole), "\n")
	for keep := 0; keep <= 4; keep++ {
		for _, tail := range []string{"", `{"step":9,"ev`, "garbage\n"} {
			path := file(t)
			require.NoError(t, os.WriteFile(path, []byte(content(t, whole)+tail), 0o644))
			n := 0
			l, err := Open(path, func(Line) bool { n++; return n <= keep })
			require.NoError(t, err)
			require.Equal(t, min(keep, 3), l.LastStep())
			require.NoError(t, l.Write(7, Train, nil))
			require.NoError(t, l.Close())
			require.Equal(t, strings.Join(all[:keep], "")+"{\"step\":7,\"event\":\"train\"}\n", content(t, path), "%d %q", keep, tail)
		}
	}
	l, err := Open(whole, nil)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Empty(t, content(t, whole), "without keep it starts afresh")
}

func TestLongFilesAreCutAtTheRightByte(t *testing.T) {
	path := file(t)
	l, err := Open(path, nil)
	require.NoError(t, err)
	want := ""
	for step := 1; step <= 3000; step++ {
		require.NoError(t, l.Write(step, Train, Metrics{"loss": float64(step), strings.Repeat("n", step%97+1): 1}))
		if step == 2500 {
			want = content(t, path)
		}
	}
	require.NoError(t, l.Close())
	l, err = Open(path, func(x Line) bool { return x.Step <= 2500 })
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Equal(t, want, content(t, path))
}

func TestReservedAndWrongLines(t *testing.T) {
	l, err := Open(file(t), nil)
	require.NoError(t, err)
	defer l.Close()
	require.ErrorContains(t, l.Write(1, Train, Metrics{"step": 1}), "cannot be called step")
	for _, bad := range []string{`{"step":1}`, `{"event":"train"}`, `{"step":1,"event":"train","x":"?"}`, `{"step":1,"event":"train","x":[]}`, `[]`} {
		require.Error(t, json.Unmarshal([]byte(bad), &Line{}), bad)
	}
	_, err = Read(filepath.Join(t.TempDir(), "gone"))
	require.ErrorContains(t, err, "read metrics")
	_, err = Open(filepath.Join(t.TempDir(), "no", "folder"), nil)
	require.ErrorContains(t, err, "open metrics")
}

func TestSessionsAreAppended(t *testing.T) {
	path := file(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, AppendSession(path, Session{Time: at, Event: "start"}))
	require.NoError(t, AppendSession(path, Session{Time: at, Event: "stop", Step: 5, Seconds: 2.5, TokensS: 10, Memory: 1, Note: "finished"}))
	require.Equal(t, `{"time":"2026-01-02T03:04:05Z","event":"start","step":0}
{"time":"2026-01-02T03:04:05Z","event":"stop","step":5,"seconds":2.5,"tokens_s":10,"memory_bytes":1,"note":"finished"}
`, content(t, path))
}

func TestHolds(t *testing.T) {
	metrics := file(t)
	require.False(t, Holds(metrics))
	written(t, metrics)
	require.True(t, Holds(metrics))
	require.False(t, HoldsSessions(metrics))
	sessions := file(t)
	require.NoError(t, AppendSession(sessions, Session{Time: time.Unix(1, 0), Event: "start"}))
	require.True(t, HoldsSessions(sessions))
	require.False(t, Holds(filepath.Dir(metrics)), "a folder is no file")
	for _, foreign := range []string{"", "epoch,loss\n1,2\n", "{}\n", `{"step":1,"event":"train"}`, "{\"loss\":1}\n", "[1]\n"} {
		path := file(t)
		require.NoError(t, os.WriteFile(path, []byte(foreign), 0o644))
		require.False(t, Holds(path) || HoldsSessions(path), foreign)
	}
}

func TestMemory(t *testing.T) {
	require.Greater(t, ResidentBytes(), uint64(1<<20))
	require.GreaterOrEqual(t, PeakBytes(), uint64(1<<20))
	if all := PhysicalBytes(); all != 0 {
		require.Greater(t, all, ResidentBytes())
	}
}
