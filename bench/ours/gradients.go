package ours

import (
	"os"

	"deeploop/bench"
	"deeploop/hrm"
	"deeploop/internal/safetensors"
)

// gradients loads weights and a batch (see Export) and writes the gradients of
// one fresh step in the requested precision.
func (s *server) gradients(r bench.Request) (bench.Reply, error) {
	var reply bench.Reply
	act, err := precision(r.Precision)
	if err != nil {
		return reply, err
	}
	c := HRMConfig(*r.Config)
	m, err := hrm.NewModel(c.Arch, act, 1)
	if err != nil {
		return reply, err
	}
	rows, err := load(m, c, r.Weights)
	if err != nil {
		return reply, err
	}
	l, err := hrm.NewLearner(m, s.backend, c, 100000)
	if err != nil {
		return reply, err
	}
	defer l.Segment.Close()
	got, err := l.Forward(rows)
	if err != nil {
		return reply, err
	}
	var out []Tensor
	for _, p := range m.Params() {
		out = append(out, Tensor{p.Name, p.Grad().Float32s()})
	}
	if p := l.Segment.Puzzle; p != nil {
		out = append(out, Tensor{p.Name, p.Grad().Float32s()})
	}
	reply.Loss = got.Loss()
	return reply, Write(r.Out, out, nil)
}

// Tensor is a flat float32 tensor with a name.
type Tensor struct {
	Name string
	Data []float32
}

// Write writes flat tensors and the rows of a batch, if any, as safetensors.
func Write(path string, tensors []Tensor, rows *hrm.Rows) error {
	var entries []safetensors.Entry
	for _, t := range tensors {
		entries = append(entries, safetensors.Entry{Name: t.Name, DType: "F32", Shape: []int{len(t.Data)}})
	}
	if rows != nil {
		for _, e := range batch(rows) {
			entries = append(entries, safetensors.Entry{Name: e.name, DType: "I32", Shape: []int{len(*e.data)}})
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := safetensors.NewWriter(f, nil, entries)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		if err := w.Put(t.Data); err != nil {
			return err
		}
	}
	if rows != nil {
		for _, e := range batch(rows) {
			if err := w.Put(*e.data); err != nil {
				return err
			}
		}
	}
	if err := w.Finish(); err != nil {
		return err
	}
	return f.Close()
}

type ints struct {
	name string
	data *[]int32
}

func batch(r *hrm.Rows) []ints {
	return []ints{{"inputs", &r.Inputs}, {"labels", &r.Labels}, {"puzzle_identifiers", &r.IDs}}
}

// Weights lists everything a model is, by the reference's names.
func Weights(m *hrm.Model) []Tensor {
	all := []Tensor{{"puzzle_emb.weights", m.PuzzleTable.Float32s()}, {"H_init", m.HInit.Float32s()}, {"L_init", m.LInit.Float32s()}}
	for _, p := range m.Params() {
		all = append(all, Tensor{p.Name, p.Data.Float32s()})
	}
	return all
}

// load fills m from a file of Write and returns the batch in it.
func load(m *hrm.Model, c hrm.TrainConfig, path string) (hrm.Rows, error) {
	rows := hrm.NewRows(c.GlobalBatchSize, c.Arch.SeqLen)
	f, err := safetensors.Open(path)
	if err != nil {
		return rows, err
	}
	defer f.Close()
	for _, t := range Weights(m) {
		if err := f.ReadInto(t.Name, t.Data); err != nil {
			return rows, err
		}
	}
	for _, p := range m.Params() {
		p.Changed()
	}
	for _, e := range batch(&rows) {
		if err := f.ReadInto(e.name, *e.data); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
