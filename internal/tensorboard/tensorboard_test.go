package tensorboard

import (
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/runlog"
	"deeploop/internal/tensorboard/tensorboardtest"
)

// The first four are CRC-32C as RFC 3720, appendix B.4, has it, masked; the
// others are of files that TensorFlow wrote: of a record, and of the length 24.
func TestMaskedChecksums(t *testing.T) {
	up, down, ones := make([]byte, 32), make([]byte, 32), make([]byte, 32)
	for i := range up {
		up[i], down[i], ones[i] = byte(i), byte(31-i), 0xff
	}
	mask := func(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }
	for _, c := range []struct {
		data []byte
		want uint32
	}{
		{make([]byte, 32), mask(0x8a9136aa)},
		{ones, mask(0x62a8ab43)},
		{up, mask(0x46dd794e)},
		{down, mask(0x113fdb5c)},
		{[]byte("\x1a\x11CRC test, one two"), 0x5794d08a},
		{[]byte{24, 0, 0, 0, 0, 0, 0, 0}, 0x224b7fa3},
	} {
		require.Equal(t, c.want, masked(c.data), "%x", c.data)
	}
}

func TestBytesOfARecord(t *testing.T) {
	require.Equal(t, "1a00000000000000129bd82d"+"09000000000000f03f"+"1000"+"1a0d627261696e2e4576656e743a32"+"cc314e92",
		hex.EncodeToString(appendRecord(nil, versionEvent(1))))
	require.Equal(t, "09000000000000f03f"+"10ac02"+"3a020801", hex.EncodeToString(startEvent(1, 300)))
	require.Equal(t, "09000000000000f03f"+"1007"+"2a13"+"0a11"+"0a0a747261696e2f6c6f7373"+"150000003f",
		hex.EncodeToString(scalarsEvent(1, runlog.Line{Step: 7, Event: "train", Values: runlog.Metrics{"loss": .5}})))
}

func line(step int, event string, loss float64) runlog.Line {
	return runlog.Line{Step: step, Event: event, Values: runlog.Metrics{"loss": loss}}
}

// session writes lines and returns those that were recorded so far.
func session(t *testing.T, logdir string, at time.Time, step int, before []runlog.Line, lines ...runlog.Line) {
	t.Helper()
	w, err := Open(logdir, "run", func() time.Time { return at })
	require.NoError(t, err)
	require.NoError(t, w.Begin(step, before))
	for _, l := range lines {
		require.NoError(t, w.Line(l))
	}
	require.NoError(t, w.Close())
}

// What is shown is always what the metrics hold, however a run was interrupted.
func TestSessionsShowEveryStepOnce(t *testing.T) {
	logdir := t.TempDir()
	at := time.Unix(1_800_000_000, 0)
	session(t, logdir, at, 0, nil, line(1, "train", 1), line(2, "train", 2), line(2, "eval", 20), line(3, "train", 3), line(4, "train", 4))
	// Killed after step 4, with a checkpoint at step 2 whose evaluation is known.
	kept := []runlog.Line{line(1, "train", 1), line(2, "train", 2), line(2, "eval", 20)}
	session(t, logdir, at, 2, kept, line(3, "train", 33))
	require.Equal(t, map[string]map[int]float32{"train/loss": {1: 1, 2: 2, 3: 33}, "eval/loss": {2: 20}},
		tensorboardtest.Shown(t, filepath.Join(logdir, "run")))
	// Once more, to a checkpoint that has to be evaluated again.
	session(t, logdir, at.Add(time.Hour), 2, kept[:2], line(2, "eval", 21), line(3, "train", 3))
	require.Equal(t, map[string]map[int]float32{"train/loss": {1: 1, 2: 2, 3: 3}, "eval/loss": {2: 21}},
		tensorboardtest.Shown(t, filepath.Join(logdir, "run")))
	// Replaced by another training.
	session(t, logdir, at.Add(2*time.Hour), 0, nil, line(1, "train", 5))
	shown := tensorboardtest.Shown(t, filepath.Join(logdir, "run"))
	require.Equal(t, map[int]float32{1: 5}, shown["train/loss"])
	require.Empty(t, shown["eval/loss"])
	files, err := filepath.Glob(filepath.Join(logdir, "run", "events.out.tfevents.*"))
	require.NoError(t, err)
	require.Len(t, files, 4, "each session has a file")
}

// A run that began without event files has all of its curves.
func TestLateEventFilesHoldAllSteps(t *testing.T) {
	logdir := t.TempDir()
	session(t, logdir, time.Unix(1, 5e8), 2, []runlog.Line{line(1, "train", 1), line(2, "train", math.NaN())}, line(3, "train", math.Inf(1)))
	shown := tensorboardtest.Shown(t, filepath.Join(logdir, "run"))["train/loss"]
	require.Equal(t, float32(1), shown[1])
	require.True(t, math.IsNaN(float64(shown[2])))
	require.True(t, math.IsInf(float64(shown[3]), 1))
	for _, e := range tensorboardtest.Read(t, filepath.Join(logdir, "run")) {
		require.Equal(t, 1.5, e.WallTime)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	refused := func(logdir, run string) string {
		_, err := Open(logdir, run, time.Now)
		require.Error(t, err)
		var bad interface{ BadInput() bool }
		require.ErrorAs(t, err, &bad)
		return err.Error()
	}
	require.Equal(t, file+" is a file, expected a folder for event files", refused(file, "run"))
	require.Equal(t, file+" is a file, expected a folder for event files", refused(dir, "file"))
	require.Contains(t, refused(filepath.Join(file, "deeper"), "run"), "cannot be written")
	if runtime.GOOS == "linux" {
		require.Contains(t, refused("/proc/events", "run"), "cannot be written")
	}
	_, err := Open(filepath.Join(dir, "new", "below"), "a/b", time.Now)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "new"), "nothing is made before a training begins")
}
