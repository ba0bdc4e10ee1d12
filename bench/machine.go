package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"deeploop/internal/cli"
)

// Machine says where and when figures were measured, and of what.
type Machine struct {
	Date      string   `json:"date"`
	Commit    string   `json:"commit"`
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`
	Features  []string `json:"features"` // of the processor, those that kernels use
	System    string   `json:"system"`
	Go        string   `json:"go"`
	Kernel    string   `json:"kernel,omitempty"` // the best here
	Peer      string   `json:"peer"`             // its version, or why there is none
}

// ThisMachine asks the system (Linux: /proc); the commit is the program's own.
func ThisMachine() Machine {
	m := Machine{
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Commit: cli.Commit(), Processor: runtime.GOARCH,
		Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(info) {
		name, value, _ := strings.Cut(string(line), ":")
		switch name, value = strings.TrimSpace(name), strings.TrimSpace(value); name {
		case "model name":
			m.Processor = value
		case "flags":
			m.Features = kernelFeatures(strings.Fields(value))
		}
	}
	return m
}

func kernelFeatures(flags []string) []string {
	used := []string{"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "amx_tile", "amx_bf16"}
	return slices.DeleteFunc(used, func(f string) bool { return !slices.Contains(flags, f) })
}

// Markdown is the head of a table.
func (m Machine) Markdown() string {
	return fmt.Sprintf("%s, commit %s, %s, %d cores (%s), %s, %s, best kernel %s; peer: %s",
		m.Date, m.Commit, m.Processor, m.Cores, strings.Join(m.Features, " "), m.System, m.Go, m.Kernel, m.Peer)
}
