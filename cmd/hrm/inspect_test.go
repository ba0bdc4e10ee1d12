package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/kernel"
)

// saveTestCheckpoint writes a small checkpoint into run at the given step.
func saveTestCheckpoint(t *testing.T, run string, step int, c hrm.TrainConfig, fill float32) {
	t.Helper()
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	w := []float32{fill, 0, 0, 4, 0, 0}
	h := []kernel.BF16{kernel.ToBF16(1.5), 0}
	seen := []int32{1, 2, 3}
	position := 17
	var set checkpoint.Set
	set.Tensor(checkpoint.Weights, "lm_head.weight", []int{2, 3}, w)
	set.Tensor(checkpoint.EMA, "half", []int{2}, kernel.B16(h))
	set.Tensor(checkpoint.Carry, "seen", []int{3}, seen)
	set.Value(checkpoint.Carry, "position", &position)
	store := checkpoint.Store{Dir: filepath.Join(run, checkpoint.Folder)}
	id := checkpoint.IdentityOf([]string{"<blank>", "a"})
	_, err = store.Save(step, checkpoint.Meta{Kind: hrm.Kind, Config: raw, Identity: &id}, &set)
	require.NoError(t, err)
}

func TestInspectShowsStepConfigTensorsAndDigest(t *testing.T) {
	t.Chdir(t.TempDir())
	c := hrm.PresetTesting()
	c.Arch.HiddenSize = 34
	saveTestCheckpoint(t, "runs/a", 12, c, 3)
	code, out, errs := runHRM("inspect", "runs/a", "--digest")
	require.Equal(t, 0, code, errs)
	for _, want := range []string{
		"step        12\n", "hidden_size: 34\n", "2 identifiers", "6 numbers in weights",
	} {
		require.Contains(t, out, want)
	}
	require.Regexp(t, `weights +lm_head.weight +F32 +\[2 3\] +5\n`, out)
	require.Regexp(t, `ema +half +BF16 +\[2\] +1\.5\n`, out)
	require.Regexp(t, `carry +seen +I32 +\[3\] +-\n`, out)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Regexp(t, `^[0-9a-f]{64}$`, lines[len(lines)-1])

	// Another place gives the same digest, another weight does not.
	saveTestCheckpoint(t, "elsewhere", 12, c, 3)
	saveTestCheckpoint(t, "other", 12, c, 2)
	last := func(dir string) string {
		code, out, errs := runHRM("inspect", dir, "--digest")
		require.Equal(t, 0, code, errs)
		l := strings.Split(strings.TrimSpace(out), "\n")
		return l[len(l)-1]
	}
	require.Equal(t, last("runs/a"), last("elsewhere"))
	require.NotEqual(t, last("runs/a"), last("other"))
}

// No norm of numbers that are not those that were saved.
func TestInspectRefusesADamagedTensor(t *testing.T) {
	t.Chdir(t.TempDir())
	saveTestCheckpoint(t, "runs/a", 12, hrm.PresetTesting(), 3)
	for group, tensor := range map[string]string{"weights": "weights/lm_head.weight", "carry": "carry/seen"} {
		path := filepath.Join("runs/a/checkpoints/step-00000012", group+".safetensors")
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		damaged := slices.Clone(whole)
		damaged[len(damaged)-2] ^= 1
		require.NoError(t, os.WriteFile(path, damaged, 0o644))
		code, out, errs := runHRM("inspect", "runs/a")
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, tensor+" is damaged")
		require.NoError(t, os.WriteFile(path, whole, 0o644))
	}
}

func TestInspectWithoutARunSaysWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := runHRM("inspect")
	require.Equal(t, cli.ExitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "hrm train")
	code, _, errs = runHRM("inspect", "nowhere")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "nowhere")
}
