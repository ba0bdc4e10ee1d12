package deeploop

import "fmt"

// Module names the stack that a call runs. Models with one stack use L alone.
type Module uint8

// The two levels of HRM.
const (
	L Module = iota // fast
	H               // slow
)

func (m Module) String() string { return [...]string{"L", "H"}[m] }

// Span says how much of a segment keeps activations for the gradient
// (architectures.md G.9).
type Span string

const (
	// LastCall keeps the last L call and the last H call (HRM's released code).
	LastCall Span = "last_call"
	// LastCycle keeps the last cycle: all its L calls and its H call (DeepLoop's
	// Eq. 19, TRM).
	LastCycle Span = "last_cycle"
	// Full keeps all calls.
	Full Span = "full"
)

// Schedule is the list of calls of one segment and the first call that keeps
// activations. Calls before FirstGrad run without gradient. The one type
// covers HRM's last-call gradient, TRM's last cycle, truncated and full
// backpropagation.
type Schedule struct {
	Calls     []Module
	FirstGrad int
}

// Cycles returns the schedule of hCycles times (lCycles L calls, one H call).
func Cycles(hCycles, lCycles int, span Span) (Schedule, error) {
	if hCycles < 1 || lCycles < 1 {
		return Schedule{}, fmt.Errorf("schedule of %d H cycles and %d L cycles, expected at least 1 of each", hCycles, lCycles)
	}
	var s Schedule
	for range hCycles {
		for range lCycles {
			s.Calls = append(s.Calls, L)
		}
		s.Calls = append(s.Calls, H)
	}
	switch span {
	case LastCall:
		s.FirstGrad = len(s.Calls) - 2
	case LastCycle:
		s.FirstGrad = len(s.Calls) - lCycles - 1
	case Full:
		s.FirstGrad = 0
	default:
		return Schedule{}, fmt.Errorf("gradient span is %q, expected last_call, last_cycle or full", span)
	}
	return s, nil
}

// NoGrad returns the calls without gradient.
func (s Schedule) NoGrad() []Module { return s.Calls[:s.FirstGrad] }

// Grad returns the calls with gradient.
func (s Schedule) Grad() []Module { return s.Calls[s.FirstGrad:] }

// Visits counts the sublayer visits of calls: two per block.
func Visits(calls []Module, hBlocks, lBlocks int) int {
	n := 0
	for _, c := range calls {
		if c == H {
			n += 2 * hBlocks
		} else {
			n += 2 * lBlocks
		}
	}
	return n
}
