package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"deeploop/internal/cli"
	"deeploop/internal/files"
)

// commandFile, beside a run's folder and its log, has the command line that the
// run was begun with. A run is never continued with another: what a resumed
// training may change, such as its number of steps, is not what the table
// compares.
func (r sweepRun) commandFile() string { return r.dir + ".command" }

func (r sweepRun) commandLine(program string) string {
	return cli.ShellLine(append([]string{program}, r.args...)...)
}

// begin makes the folder above the run's and notes its command line.
func (r sweepRun) begin(program string) error {
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o755); err != nil {
		return err
	}
	return files.WriteFile(r.commandFile(), []byte(r.commandLine(program)+"\n"))
}

// begunOtherwise refuses a plan with a run that is there already and was begun
// with other flags than the file has now.
func (s *Sweep) begunOtherwise(program string, runs []sweepRun, results []*sweepResult) error {
	for i, r := range runs {
		if results[i] != nil || !checkpointed(r.dir) {
			continue
		}
		now, then := r.commandLine(program), r.begunWith(program)
		if then != "" && then != now {
			return cli.Usagef("sweep %s: %s was begun with other flags than the file has now\n  then  %s\n  now   %s\nput the flags back, give the setting another name, or remove %s to train it anew",
				s.Name, r.dir, then, now, r.dir)
		}
	}
	return nil
}

// begunWith is the command line that a run was begun with, "" where it is not
// known.
func (r sweepRun) begunWith(program string) string {
	if raw, err := os.ReadFile(r.commandFile()); err == nil {
		return strings.TrimSpace(string(raw))
	}
	var x sweepResult // of a version that noted it at the end
	raw, err := os.ReadFile(filepath.Join(r.dir, sweepFile))
	if err != nil || json.Unmarshal(raw, &x) != nil {
		return ""
	}
	return cli.ShellLine(append([]string{program}, x.Args...)...)
}
