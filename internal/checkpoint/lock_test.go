package checkpoint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestMain lets this program be its own child: with HOLD_LOCK set it takes the
// lock of that folder, says so, and waits to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HOLD_LOCK"); dir != "" {
		if _, err := Acquire(dir, noon); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Stdout.WriteString("held")
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockOfALivingProcessIsNamed(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HOLD_LOCK="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	buf := make([]byte, 4)
	_, err = out.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "held", string(buf))

	_, err = Acquire(dir, noon)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, child.Process.Pid, locked.Owner.PID)
	require.ErrorContains(t, err, "process "+strconv.Itoa(child.Process.Pid)+" uses this run since 2026-11-30 12:00:00")
	require.Equal(t, cli.ExitUsage, cli.ExitCode(err))

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.FileExists(t, filepath.Join(dir, LockFile), "the killed process left its file")
	l, err := Acquire(dir, noon)
	require.NoError(t, err, "a dead process does not block")
	_, err = Acquire(dir, noon)
	require.ErrorAs(t, err, &locked, "nor does one process get it twice")
	require.NoError(t, l.Release())
	require.NoFileExists(t, filepath.Join(dir, LockFile))
	l, err = Acquire(dir, noon)
	require.NoError(t, err)
	require.NoError(t, l.Release())
}

func TestMayTake(t *testing.T) {
	me := Owner{PID: os.Getpid(), Host: "here", BootID: "now"}
	gone := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, gone.Run())
	dead := gone.Process.Pid
	for name, c := range map[string]struct {
		old  Owner
		got  bool
		want bool
	}{
		"empty file":                                {Owner{}, true, true},
		"same machine, system's lock free":          {Owner{me.PID, "here", "now", noon}, true, true},
		"before a restart":                          {Owner{1, "here", "before", noon}, true, true},
		"renamed container on the same kernel":      {Owner{1, "there", "now", noon}, true, true},
		"another machine":                           {Owner{1, "there", "other", noon}, true, false},
		"no system locks, living process":           {Owner{me.PID, "here", "now", noon}, false, false},
		"no system locks, dead process":             {Owner{dead, "here", "now", noon}, false, true},
		"no system locks, before a restart":         {Owner{me.PID, "here", "before", noon}, false, true},
		"no system locks, another machine":          {Owner{dead, "there", "other", noon}, false, false},
		"no system locks, another machine, no boot": {Owner{dead, "there", "", noon}, false, false},
	} {
		require.Equal(t, c.want, mayTake(c.old, me, c.got), name)
	}
}

func TestLockFileOfAnotherMachineBlocks(t *testing.T) {
	dir := t.TempDir()
	b, err := json.Marshal(Owner{PID: 12, Host: "elsewhere", BootID: "other", Started: noon})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, LockFile), b, 0o644))
	_, err = Acquire(dir, noon)
	require.ErrorContains(t, err, "process 12 on elsewhere uses this run since 2026-11-30 12:00:00")
	require.NoError(t, os.WriteFile(filepath.Join(dir, LockFile), []byte("garbage"), 0o644))
	l, err := Acquire(dir, noon)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	_, err = Acquire(filepath.Join(dir, "gone"), noon)
	require.ErrorContains(t, err, "lock run")
}
