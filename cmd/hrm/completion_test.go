package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/hrm"
	"deeploop/internal/command/commandtest"
)

func TestCompletionOfValues(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Touch(t, 1, "runs/one/metrics.jsonl")
	commandtest.Touch(t, 2, "runs/two/metrics.jsonl")
	commandtest.Touch(t, 3, "runs/notes/readme")
	commandtest.Touch(t, 4, "data/small/manifest.json")
	for line, want := range map[string][]string{
		"train --preset ":        hrm.Presets(),
		"train --preset=":        hrm.Presets(),
		"train --placement ":     deeploop.Placements,
		"bench --placement d":    {"deepnorm", "deeploop"},
		"eval --kernel a":        {"avx2", "avx512", "amx", "auto"},
		"train --precision ":     {"fp32", "bf16", "auto"},
		"train --run ":           {"runs/one", "runs/two"},
		"eval --run runs/t":      {"runs/two"},
		"eval --data ":           {"data/small"},
		"inspect ":               {"runs/one", "runs/two"},
		"plot runs/one runs/":    {"runs/one", "runs/two"},
		"train --batch-size ":    nil,
		"completion ":            {"bash", "zsh", "fish", "powershell"},
		"tra":                    {"train"},
		"show --color ":          {"auto", "always", "never"},
		"train --global-batch-s": {"--global-batch-size"},
	} {
		require.Equal(t, want, hrmProgram.Complete(t, line), line)
	}
}

// The shells that are here can read their scripts.
func TestCompletionScripts(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}, "powershell": nil} {
		out, _ := ok(t, "completion "+shell)
		require.Contains(t, out, "hrm")
		require.Greater(t, strings.Count(out, "\n"), 50)
		if check == nil {
			continue
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			continue
		}
		file := t.TempDir() + "/script"
		require.NoError(t, os.WriteFile(file, []byte(out), 0o644))
		said, err := exec.Command(check[0], append(check[1:], file)...).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	require.Contains(t, fails(t, 2, "completion tcsh"), `no completion for "tcsh", expected one of bash, zsh, fish, powershell`)
	require.Contains(t, fails(t, 2, "completion"), "name one shell")
}
