// Package bench compares this project with what a user would run instead, on
// one machine and in one run. Both sides are processes that work on request
// (package ours here, bench/peer in PyTorch), so that they take turns within
// seconds on a machine that others may use too.
package bench

import (
	"fmt"
	"strings"

	"deeploop/internal/wording"
)

// Config is the size of a model and its batch, with the reference's names.
type Config struct {
	Name string `json:"name,omitempty"`
	// Model is HRM or LM; the zero value is HRM.
	Model      Model `json:"model,omitempty"`
	HiddenSize int   `json:"hidden_size"`
	NumHeads   int   `json:"num_heads"`
	SeqLen     int   `json:"seq_len"`
	BatchSize  int   `json:"batch_size"`

	// of HRM
	HLayers int `json:"H_layers,omitempty"`
	LLayers int `json:"L_layers,omitempty"`
	HCycles int `json:"H_cycles,omitempty"`
	LCycles int `json:"L_cycles,omitempty"`

	// of LM
	Layers    int `json:"layers,omitempty"`
	Loops     int `json:"loops,omitempty"`
	VocabSize int `json:"vocab_size,omitempty"`

	// Like names the size that has the same model: what is fastest for the peer
	// is found out there.
	Like string `json:"-"`
}

// Model is the kind of a model.
type Model string

// The models that are compared.
const (
	HRM Model = ""
	LM  Model = "lm"
)

// Configs are the sizes that are compared. Of HRM: A and B are small grids
// (10x10), C is the published model on full ARC canvases, C4 the same with four
// rows. Of the looped language model: gpt2 is the paper's small one, bytes a
// small one that loops, and gpt2-short so few tokens that the optimizer's
// memory traffic counts most.
var Configs = []Config{
	{Name: "A", HiddenSize: 128, NumHeads: 4, HLayers: 2, LLayers: 2, HCycles: 2, LCycles: 2, SeqLen: 100, BatchSize: 64},
	{Name: "B", HiddenSize: 256, NumHeads: 4, HLayers: 4, LLayers: 4, HCycles: 2, LCycles: 2, SeqLen: 100, BatchSize: 32},
	{Name: "C", HiddenSize: 512, NumHeads: 8, HLayers: 4, LLayers: 4, HCycles: 2, LCycles: 2, SeqLen: 900, BatchSize: 1},
	{Name: "C4", HiddenSize: 512, NumHeads: 8, HLayers: 4, LLayers: 4, HCycles: 2, LCycles: 2, SeqLen: 900, BatchSize: 4, Like: "C"},
	{Name: "gpt2", Model: LM, HiddenSize: 768, NumHeads: 6, Layers: 12, Loops: 1, VocabSize: 50304, SeqLen: 1024, BatchSize: 1},
	{Name: "bytes", Model: LM, HiddenSize: 256, NumHeads: 4, Layers: 4, Loops: 4, VocabSize: 257, SeqLen: 256, BatchSize: 16},
	{Name: "gpt2-short", Model: LM, HiddenSize: 768, NumHeads: 6, Layers: 12, Loops: 1, VocabSize: 50304, SeqLen: 64, BatchSize: 4},
}

// Describe says what a size is.
func (c Config) Describe() string {
	what := fmt.Sprintf("HRM, %d+%d blocks", c.HLayers, c.LLayers)
	if c.Model == LM {
		what = fmt.Sprintf("looped language model, %s, %s, vocabulary %d", wording.Count(c.Layers, "block"), wording.Count(c.Loops, "loop"), c.VocabSize)
	}
	return fmt.Sprintf("%s, %d wide, %d heads, %d positions, batch %d", what, c.HiddenSize, c.NumHeads, c.SeqLen, c.BatchSize)
}

// Size is the size of Configs with a name.
func Size(name string) (Config, error) {
	names := make([]string, len(Configs))
	for i, c := range Configs {
		if c.Name == name {
			return c, nil
		}
		names[i] = c.Name
	}
	return Config{}, fmt.Errorf("no size %q: there are %s", name, strings.Join(names, ", "))
}

// Request is what either side is asked for; see bench/peer/serve.py.
type Request struct {
	Op        string  `json:"op"`
	Config    *Config `json:"config,omitempty"`
	Precision string  `json:"precision,omitempty"`
	Times     int     `json:"times,omitempty"`

	// of op open, for the peer only
	Cast      string `json:"cast,omitempty"`
	Attention string `json:"attention,omitempty"`
	Optimizer string `json:"optimizer,omitempty"`
	Table     string `json:"table,omitempty"`

	// of op product
	Kind string `json:"kind,omitempty"`
	M    int    `json:"m,omitempty"`
	N    int    `json:"n,omitempty"`
	K    int    `json:"k,omitempty"`

	// of op gradients, and of export (ours only: weights and batch): safetensors
	// files
	Weights string `json:"weights,omitempty"`
	Out     string `json:"out,omitempty"`

	// of op probe, ours only: how long
	Seconds float64 `json:"probe_seconds,omitempty"`
}

// Reply is the answer.
type Reply struct {
	Error   string    `json:"error,omitempty"`
	Seconds []float64 `json:"seconds,omitempty"`
	Loss    float64   `json:"loss,omitempty"`
	PeakRSS int64     `json:"peak_rss_bytes,omitempty"`
	GFLOPS  float64   `json:"gflops,omitempty"`

	// of the first line, before any request
	Version string `json:"version,omitempty"`
	Threads int    `json:"threads,omitempty"`
	Kernel  string `json:"kernel,omitempty"`
}
