package runlog

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// ResidentBytes returns the memory this process holds: its resident set where
// the system tells (Linux), else what the Go runtime took.
func ResidentBytes() uint64 { return memory("VmRSS:") }

// PeakBytes returns the largest ResidentBytes so far.
func PeakBytes() uint64 { return memory("VmHWM:") }

func memory(field string) uint64 {
	if n := kilobytes("/proc/self/status", field); n > 0 {
		return n
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

// FreeBytes returns the memory that programs can still take without the machine
// swapping or stopping one: what Linux calls available, or what is left of the
// control group's limit where that is less. 0 where the system does not tell.
func FreeBytes() uint64 { return freeBytes("/proc/meminfo", "/sys/fs/cgroup") }

func freeBytes(meminfo, group string) uint64 {
	free := kilobytes(meminfo, "MemAvailable:")
	limit, used := fileNumber(filepath.Join(group, "memory.max")), fileNumber(filepath.Join(group, "memory.current"))
	if left := limit - min(used, limit); limit > 0 && free > 0 {
		// What the group has read from files counts as used and can be given up.
		free = min(free, max(1, left+min(used, statistic(filepath.Join(group, "memory.stat"), "inactive_file "))))
	}
	return free
}

// kilobytes reads a line "FIELD: N kB" of a file, as bytes; 0 without one.
func kilobytes(path, field string) uint64 { return 1024 * statistic(path, field) }

// statistic reads the number that follows field in a file; 0 without one.
func statistic(path, field string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	b = append([]byte("\n"), b...)
	_, rest, found := bytes.Cut(b, []byte("\n"+field))
	f := bytes.Fields(rest)
	if !found || len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(f[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// fileNumber reads a file that holds a number; 0 where it is none ("max").
func fileNumber(path string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
