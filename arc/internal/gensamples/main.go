// Command gensamples writes the sample tasks that package arc embeds. Every
// task follows one rule of the catalog; a seed fixes all of them:
//
//	go generate deeploop/arc
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", "samples", "folder for training/ and evaluation/")
	seed := flag.Uint64("seed", 1, "seed of all tasks")
	flag.Parse()
	if err := write(*out, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "gensamples:", err)
		os.Exit(1)
	}
}

// write makes the folder hold exactly the tasks of the catalog.
func write(dir string, seed uint64) error {
	tasks, err := generate(seed)
	if err != nil {
		return err
	}
	for _, split := range []string{"training", "evaluation"} {
		old, err := filepath.Glob(filepath.Join(dir, split, "*.json"))
		if err != nil {
			return err
		}
		for _, file := range old {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, split), 0o755); err != nil {
			return err
		}
	}
	for i := range tasks {
		t := &tasks[i]
		if err := os.WriteFile(filepath.Join(dir, t.Split, t.ID+".json"), t.JSON(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
