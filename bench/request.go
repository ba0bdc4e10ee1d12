// Package bench compares this project with what a user would run instead, on
// one machine and in one run. Both sides are processes that work on request
// (package ours here, bench/peer in PyTorch), so that they take turns within
// seconds on a machine that others may use too.
package bench

import (
	"fmt"
	"strings"
)

// Config is the size of a model and its batch, with the reference's names.
type Config struct {
	Name       string `json:"name,omitempty"`
	HiddenSize int    `json:"hidden_size"`
	NumHeads   int    `json:"num_heads"`
	HLayers    int    `json:"H_layers"`
	LLayers    int    `json:"L_layers"`
	HCycles    int    `json:"H_cycles"`
	LCycles    int    `json:"L_cycles"`
	SeqLen     int    `json:"seq_len"`
	BatchSize  int    `json:"batch_size"`
}

// Configs are the sizes that are compared: A and B are small grids (10x10), C
// is the published model on full ARC canvases, C4 the same with four rows.
var Configs = []Config{
	{"A", 128, 4, 2, 2, 2, 2, 100, 64},
	{"B", 256, 4, 4, 4, 2, 2, 100, 32},
	{"C", 512, 8, 4, 4, 2, 2, 900, 1},
	{"C4", 512, 8, 4, 4, 2, 2, 900, 4},
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
