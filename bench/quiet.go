package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A machine that does other work meanwhile measures that work too, and badly:
// OpenMP's threads wait for one that lost its processor to it, which made a
// step of PyTorch 6 times slower. So a sample counts only when processes other
// than the two sides used less than this share of one core.
const quietShare = 0.10

// tries is how often a disturbed sample is repeated before it is taken as is.
const tries = 4

// Quiet runs f until it was not disturbed, tries times at most, and reports
// whether the last run was quiet. sides are the processes whose own work is
// expected. Without /proc every run is taken as quiet.
func Quiet(sides []*Process, f func() error) (quiet bool, err error) {
	for range tries {
		start, busy, own := time.Now(), busySeconds(), ownSeconds(sides)
		if err := f(); err != nil {
			return false, err
		}
		took := time.Since(start).Seconds()
		others := (busySeconds() - busy) - (ownSeconds(sides) - own)
		const tick = 0.02 // both counts move in hundredths of a second
		if others <= quietShare*took+tick {
			return true, nil
		}
		fmt.Fprintf(os.Stderr, "  disturbed: others worked %.2f s of %.2f s\n", others, took)
		time.Sleep(200 * time.Millisecond)
	}
	return false, nil
}

const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on

// busySeconds is how long all processors together have worked so far.
func busySeconds() float64 {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var sum float64
	for i, field := range bytes.Fields(line) {
		v, _ := strconv.ParseFloat(string(field), 64)
		const name, idle, wait, guest = 0, 4, 5, 9 // guest time is in user time already
		if i != name && i != idle && i != wait && i < guest {
			sum += v
		}
	}
	return sum / ticksPerSecond
}

func ownSeconds(sides []*Process) float64 {
	sum := processSeconds(os.Getpid())
	for _, p := range sides {
		sum += processSeconds(p.cmd.Process.Pid)
	}
	return sum
}

func processSeconds(pid int) float64 {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ") // a name may hold blanks
	fields := strings.Fields(after)
	const user, system = 11, 12 // fields 14 and 15 of proc(5)
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.ParseFloat(fields[user], 64)
	s, _ := strconv.ParseFloat(fields[system], 64)
	return (u + s) / ticksPerSecond
}
