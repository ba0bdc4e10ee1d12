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
	"deeploop/internal/profile"
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
		Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Commit: cli.Commit(), Processor: profile.Processor(),
		Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(info) {
		if name, value, _ := strings.Cut(string(line), ":"); strings.TrimSpace(name) == "flags" {
			m.Features = kernelFeatures(strings.Fields(value))
			break // all processors have the same
		}
	}
	return m
}

func kernelFeatures(flags []string) []string {
	used := []string{"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "amx_tile", "amx_bf16"}
	return slices.DeleteFunc(used, func(f string) bool { return !slices.Contains(flags, f) })
}

// Heading begins a part of the table.
func (m Machine) Heading(title string) string {
	return fmt.Sprintf("## %s\n\n%s, commit %s, %s, %d cores (%s), %s, %s, best kernel %s; peer: %s\n\n",
		title, m.Date, m.Commit, m.Processor, m.Cores, strings.Join(m.Features, " "), m.System, m.Go, m.Kernel, m.Peer)
}
