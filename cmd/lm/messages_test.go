package main

import (
	"strings"
	"testing"

	"deeploop/internal/command/commandtest"
)

func TestMessagesOfEveryCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Write(t, "text.txt", strings.Repeat("a text of some length. ", 200))
	commandtest.AsProgram(t)
	commandtest.Write(t, "loops.yaml", strings.ReplaceAll(sweepFile, "seeds: [1, 2]", "seeds: [1]"))
	lmProgram.Messages(t,
		"prepare --input text.txt --tokenizer byte --out data/text --force",
		"prepare --verify data/text --json",
		trainTiny+"--data data/text --steps 2 --run runs/a --force",
		"eval --run runs/a --json",
		"suite --run runs/a --limit 2 --json",
		"generate --run runs/a --tokens 2",
		"export --run runs/a --out exported --force",
		"inspect runs/a --digest",
		"diagnose kappa --run runs/a --batches 1 --batch 1 --json",
		"bench --preset testing --seconds 0.1 --kernel ref --json",
		"plot runs/a",
		"show data/text",
		"sweep loops.yaml --json",
	)
}
