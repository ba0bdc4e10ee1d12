package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
)

// A run is followed to its end, and what is scored while it trains is what
// hrm eval and hrm score give afterwards.
func TestWatchFollowsARun(t *testing.T) {
	every := watchEvery
	t.Cleanup(func() { watchEvery = every })
	watchEvery = 20 * time.Millisecond
	workFolder(t)
	trained := make(chan string)
	go func() {
		_, _, errs := runHRM(strings.Fields(trainTiny + "--steps 12 --eval-steps 3 --run runs/a")...)
		trained <- errs
	}()
	for deadline := time.Now().Add(time.Minute); !checkpoint.InUse("runs/a") && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	out, errs := ok(t, "score --watch runs/a --augmentations 1")
	t.Log(<-trained)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.LessOrEqual(t, strings.Count(errs, "waiting for"), 1+len(lines))
	last := lines[len(lines)-1]
	require.Regexp(t, `^step 12 +pass@1 .*pass@2 .*pass@1000 `, last)

	alone, _ := ok(t, "score --watch runs/a --augmentations 1")
	require.Equal(t, last+"\n", alone, "a run that nobody trains: its last checkpoint")
	ok(t, "eval --run runs/a --last --augmentations 1 --threads 1")
	after, _ := ok(t, "score")
	for _, pass := range strings.Split(last, "   ")[1:] {
		if name, value, found := strings.Cut(strings.TrimSpace(pass), " "); found && strings.HasPrefix(name, "pass@") {
			require.Regexp(t, name+` +`+strings.NewReplacer("(", `\(`, ")", `\)`, ".", `\.`).Replace(value), after)
		}
	}
}

func TestWatchRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Contains(t, fails(t, cli.ExitUsage, "score --watch runs/a"), "runs/a")
	require.Contains(t, fails(t, cli.ExitUsage, "score --watch runs/a --json"), "--json")
	require.Contains(t, fails(t, cli.ExitUsage, "score --threads 2"), "--watch")
	require.NoError(t, os.Mkdir("empty", 0o755))
	require.Contains(t, fails(t, cli.ExitUsage, "score --watch empty"), "holds none")
}
