package command_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/command"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/train"
)

func TestNewestFolderIsTheLastFinishedOne(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := command.NewestFolder("data", "manifest.json", nil)
	require.NoError(t, err)
	require.Empty(t, got, "no data folder at all")

	commandtest.Touch(t, 5, "data", "a", "manifest.json")
	commandtest.Touch(t, 7, "data", "b", "manifest.json")
	commandtest.Touch(t, 6, "data", "c", "manifest.json")
	commandtest.Touch(t, 9, "data", "unfinished", "train", "all__inputs.npy")
	commandtest.Touch(t, 9, "data", "manifest.json")
	got, err = command.NewestFolder("data", "manifest.json", nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "b"), got)

	commandtest.Touch(t, 7, "data", "bb", "manifest.json")
	got, err = command.NewestFolder("data", "manifest.json", nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "bb"), got, "equally old: last by name")

	got, err = command.NewestFolder("data", "manifest.json", func(dir string) bool { return filepath.Base(dir) < "b" })
	require.NoError(t, err)
	require.Equal(t, filepath.Join("data", "a"), got, "the newest of those that count")
}

func TestNewRunFolderIsNeverAnOldOne(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Date(2026, 11, 30, 5, 4, 3, 0, time.UTC)
	first, err := command.NewRunFolder("laptop", now)
	require.NoError(t, err)
	require.Equal(t, filepath.Join("runs", "20261130-050403-laptop"), first)
	require.NoError(t, os.MkdirAll(first, 0o755))
	second, err := command.NewRunFolder("laptop", now)
	require.NoError(t, err)
	require.Equal(t, first+"-2", second)
}

// Both programs put runs into one folder; each takes its own for the newest.
func TestNewestRunIsOneOfItsKind(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := command.RunOrNewest("lm", "lm", nil, command.NewestRun)
	require.ErrorContains(t, err, "train one with lm train")
	for i, kind := range []string{"lm", "hrm"} {
		run := filepath.Join(command.RunsFolder, kind)
		store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
		var set checkpoint.Set
		set.Tensor(checkpoint.Weights, "w", []int{1}, []float32{1})
		_, err := store.Save(1, checkpoint.Meta{Kind: kind, Config: []byte("{}")}, &set)
		require.NoError(t, err)
		commandtest.Touch(t, i, run, train.MetricsFile)
	}
	for _, kind := range []string{"lm", "hrm"} {
		got, err := command.RunOrNewest("x", kind, nil, command.NewestRun)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(command.RunsFolder, kind), got)
	}
	// An imported model has checkpoints and no metrics.
	imported := filepath.Join(command.RunsFolder, "imported")
	store := checkpoint.Store{Dir: filepath.Join(imported, checkpoint.Folder)}
	var set checkpoint.Set
	set.Tensor(checkpoint.Weights, "w", []int{1}, []float32{1})
	_, err = store.Save(1, checkpoint.Meta{Kind: "lm", Config: []byte("{}")}, &set)
	require.NoError(t, err)
	got, err := command.NewestRun("lm")
	require.NoError(t, err)
	require.Equal(t, imported, got)
	got, err = command.NewestTraining("lm")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(command.RunsFolder, "lm"), got)

	future := time.Now().Add(time.Hour)
	commandtest.Touch(t, 9, command.RunsFolder, "young", train.MetricsFile)
	require.NoError(t, os.Chtimes(filepath.Join(command.RunsFolder, "young", train.MetricsFile), future, future))
	got, err = command.NewestRun("lm")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(command.RunsFolder, "young"), got, "it has no checkpoint yet")
}
