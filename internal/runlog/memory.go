package runlog

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// ResidentBytes returns the memory this process holds: its resident set where
// the system tells (Linux), else what the Go runtime took.
func ResidentBytes() uint64 { return memory("VmRSS:") }

// PeakBytes returns the largest ResidentBytes so far.
func PeakBytes() uint64 { return memory("VmHWM:") }

func memory(field string) uint64 {
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		if i := bytes.Index(b, []byte(field)); i >= 0 {
			f := bytes.Fields(b[i+len(field):])
			if len(f) > 0 {
				if kb, err := strconv.ParseUint(string(f[0]), 10, 64); err == nil {
					return kb * 1024
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
