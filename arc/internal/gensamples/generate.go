package main

import (
	"fmt"
	"hash/fnv"

	"deeploop/arc"
)

// sample is one task of the catalog: a rule and the kind of inputs that show it.
type sample struct {
	name         string
	split        string // "training" or "evaluation"
	demos, tests int
	input        func(r *rng) arc.Grid
	// apply is the rule. It returns the zero Grid for an input that is not of
	// its kind, and never changes the input.
	apply func(g arc.Grid) arc.Grid
}

// maxTries bounds how many candidates a task may reject.
const maxTries = 5000

// generate returns the tasks of the catalog in its order.
func generate(seed uint64) ([]arc.Task, error) {
	samples := catalog()
	all := append(catalog(), rivals()...)
	tasks := make([]arc.Task, 0, len(samples))
	for i := range samples {
		s := &samples[i]
		t, err := s.draw(seed, all)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// draw makes candidates from the task's own stream until one passes all
// checks, so that a change to one task leaves the others as they are.
func (s *sample) draw(seed uint64, all []sample) (arc.Task, error) {
	name := fnv.New64a()
	name.Write([]byte(s.split + "/" + s.name))
	r := newRNG(seed, name.Sum64())
	reasons := make(map[string]int)
	for range maxTries {
		t := arc.Task{ID: s.name, Split: s.split}
		for k := range s.demos + s.tests {
			in := s.input(r)
			p := arc.Pair{Input: in, Output: s.apply(in)}
			if k < s.demos {
				t.Train = append(t.Train, p)
			} else {
				t.Test = append(t.Test, p)
			}
		}
		err := s.check(&t, all)
		if err == nil {
			return t, nil
		}
		reasons[err.Error()]++
	}
	return arc.Task{}, fmt.Errorf("task %s: none of %d candidates passes, how often and why: %v", s.name, maxTries, reasons)
}
