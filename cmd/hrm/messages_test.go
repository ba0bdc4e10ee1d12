package main

import "testing"

func TestMessagesOfEveryCommand(t *testing.T) {
	workFolder(t)
	hrmProgram.Messages(t,
		"build-data --num-aug 1 --out data/small --force",
		"build-data --verify data/small",
		trainTiny+"--steps 2 --run runs/a --force --tensorboard tb",
		"eval --run runs/a --augmentations 1",
		"score --json",
		"score --watch runs/a --augmentations 1",
		"report runs/a --most 1 --examples 1",
		"export --run runs/a --format safetensors --out exported.safetensors",
		"inspect runs/a",
		"bench --preset testing --seconds 0.1 --kernel ref --json",
		"solve halo --minutes 0.02 --again --json",
		"show halo",
		"plot runs/a",
	)
}
