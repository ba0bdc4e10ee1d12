package main

import (
	"fmt"
	"os"
	"sort"

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/wording"
)

// findProblems resolves the TASK arguments of hrm solve, and keeps the tasks
// that a list names. A task that occurs twice is answered once.
func findProblems(s *cli.Streams, args []string, list string) ([]*arc.Task, error) {
	if len(args) == 0 {
		return nil, cli.Usagef("solve: no TASK given, expected a task file, a folder of tasks or a sample task; `hrm show` lists the samples")
	}
	var wanted map[string]bool // ids of the list, true once found
	if list != "" {
		names, err := readTaskList(list)
		if err != nil {
			return nil, err
		}
		wanted = map[string]bool{}
		for _, n := range names {
			wanted[n] = false
		}
	}
	var tasks []*arc.Task
	byID := map[string]*arc.Task{}
	var twice []string
	for _, arg := range args {
		found, warnings, err := problemsOf(arg)
		if err != nil {
			return nil, err
		}
		for _, w := range warnings {
			s.Warnf("%s", w)
		}
		for _, t := range found {
			if _, named := wanted[t.ID]; wanted != nil && !named {
				continue
			}
			if twin := byID[t.ID]; twin != nil {
				if !twin.SamePairs(t) {
					return nil, cli.Usagef("solve: two different tasks are called %q (%s and %s), but a submission has one entry for a name; rename one, or name only one of the two",
						t.ID, twin.File, t.File)
				}
				if twin.File != t.File {
					twice = append(twice, fmt.Sprintf("%s (%s and %s)", arc.Printable(t.ID), twin.File, t.File))
				}
				continue
			}
			byID[t.ID] = t
			tasks = append(tasks, t)
			if wanted != nil {
				wanted[t.ID] = true
			}
		}
	}
	if len(twice) > 0 {
		s.Infof("note: there twice, answered once: %s", wording.List(twice, 5))
	}
	var missing []string
	for id, found := range wanted {
		if !found {
			missing = append(missing, id)
		}
	}
	if sort.Strings(missing); len(missing) > 0 {
		return nil, cli.Usagef("solve: %s names tasks that are not there: %s", list, wording.List(missing, 10))
	}
	if len(tasks) == 0 {
		return nil, cli.Usagef("solve: no task is left to answer")
	}
	return tasks, nil
}

// problemsOf resolves one TASK. Of a folder all tasks below it are taken, and
// files that are none left out with a warning.
func problemsOf(arg string) ([]*arc.Task, []string, error) {
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		c, err := arc.LoadSome(arg)
		if err != nil {
			return nil, nil, command.Instead(err, "solve", arg, command.ARCTasks)
		}
		tasks := make([]*arc.Task, len(c.Tasks))
		for i := range c.Tasks {
			tasks[i] = &c.Tasks[i]
		}
		return tasks, c.Warnings, nil
	}
	return findTasks("solve", arg)
}
