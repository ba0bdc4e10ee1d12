package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/deeploop"
	"deeploop/internal/command/commandtest"
	"deeploop/lm"
)

func TestCompletionOfValues(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Touch(t, 1, "runs/one/metrics.jsonl")
	commandtest.Touch(t, 2, "data/books/manifest.json")
	for line, want := range map[string][]string{
		"train --preset ":         lm.Presets(),
		"train --placement ":      deeploop.Placements,
		"train --mlp g":           {lm.MLPGELU, lm.MLPGELUErf},
		"generate --run ":         {"runs/one"},
		"diagnose kappa --data ":  {"data/books"},
		"diagnose kappa --split ": {"val", "train"},
		"export --dtype ":         {"fp32", "bf16"},
		"suite convert --task pi": {"piqa"},
	} {
		require.Equal(t, want, lmProgram.Complete(t, line), line)
	}
}

// Every value that the shell offers is one that the program takes.
func TestCompletionOffersWhatIsTaken(t *testing.T) {
	for _, flag := range []string{"placement", "mlp", "precision", "preset"} {
		for _, v := range lmProgram.Complete(t, "train --"+flag+" ") {
			if flag == "preset" {
				_, err := lm.Preset(v)
				require.NoError(t, err)
				continue
			}
			c := lm.PresetTesting()
			switch flag {
			case "placement":
				c.Arch.Placement = v
			case "mlp":
				c.Arch.MLP = v
			case "precision":
				c.Precision = v
			}
			c.Follow(lm.PresetTesting(), func(key string) bool { return key == flag || key == "arch."+flag })
			require.NoError(t, c.Validate(), "%s %s", flag, v)
		}
	}
}
