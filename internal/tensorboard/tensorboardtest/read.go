// Package tensorboardtest reads event files in tests, by the specification of
// the format and not by the code that writes them.
package tensorboardtest

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// Event is an Event of the kinds that are written.
type Event struct {
	WallTime float64
	Step     int
	Version  string
	Start    bool // SessionLog START
	Scalars  map[string]float32
}

// Read reads the event files of a folder, in the order of their names, and
// checks every checksum.
func Read(t *testing.T, dir string) (events []Event) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	require.NoError(t, err)
	slices.Sort(files)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		for i, data := range Records(t, raw) {
			e := parse(t, data)
			require.Equal(t, i == 0, strings.HasPrefix(e.Version, "brain.Event:"), "a file begins with its version")
			events = append(events, e)
		}
	}
	return events
}

// Records cuts TFRecords apart.
func Records(t *testing.T, raw []byte) (all [][]byte) {
	t.Helper()
	check := func(b []byte, sum uint32) {
		crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		sum -= 0xa282ead8
		require.Equal(t, crc, sum>>17|sum<<15, "checksum")
	}
	for len(raw) > 0 {
		require.GreaterOrEqual(t, len(raw), 16)
		n := binary.LittleEndian.Uint64(raw)
		check(raw[:8], binary.LittleEndian.Uint32(raw[8:]))
		require.GreaterOrEqual(t, uint64(len(raw)), 16+n)
		data := raw[12 : 12+n]
		check(data, binary.LittleEndian.Uint32(raw[12+n:]))
		all, raw = append(all, data), raw[16+n:]
	}
	return all
}

// fields calls yield for every field of a message; v holds numbers, b the rest.
func fields(t *testing.T, message []byte, yield func(n protowire.Number, v uint64, b []byte)) {
	t.Helper()
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		require.Positive(t, size)
		message = message[size:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, size = protowire.ConsumeFixed32(message)
			v = uint64(v32)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(message)
		default:
			size = -1
		}
		require.Positive(t, size, "field %d", n)
		yield(n, v, b)
		message = message[size:]
	}
}

func parse(t *testing.T, data []byte) (e Event) {
	t.Helper()
	fields(t, data, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case 1:
			e.WallTime = math.Float64frombits(v)
		case 2:
			e.Step = int(v)
		case 3:
			e.Version = string(b)
		case 5:
			e.Scalars = map[string]float32{}
			fields(t, b, func(n protowire.Number, _ uint64, value []byte) {
				require.EqualValues(t, 1, n)
				var tag string
				fields(t, value, func(n protowire.Number, v uint64, b []byte) {
					switch n {
					case 1:
						tag = string(b)
					case 2:
						e.Scalars[tag] = math.Float32frombits(uint32(v))
					}
				})
			})
		case 7:
			fields(t, b, func(n protowire.Number, v uint64, _ []byte) { e.Start = n == 1 && v == 1 })
		default:
			require.Fail(t, "unknown field", "%d", n)
		}
	})
	return e
}

// Shown is what TensorBoard shows of a folder: the values of every tag by step.
// From the second START on, each voids what came before it from its step on.
func Shown(t *testing.T, dir string) map[string]map[int]float32 {
	t.Helper()
	shown, started := map[string]map[int]float32{}, false
	for _, e := range Read(t, dir) {
		if e.Start && started {
			for _, points := range shown {
				for step := range points {
					if step >= e.Step {
						delete(points, step)
					}
				}
			}
		}
		started = started || e.Start
		for tag, v := range e.Scalars {
			if shown[tag] == nil {
				shown[tag] = map[int]float32{}
			}
			require.NotContains(t, shown[tag], e.Step, "%s twice at step %d", tag, e.Step)
			shown[tag][e.Step] = v
		}
	}
	return shown
}
