package tensorboard

import (
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"deeploop/internal/runlog"
)

// fileVersion is what the first event of a file says; readers heed sessions from
// version 2 on.
const fileVersion = "brain.Event:2"

// Numbers of the fields that are written, and of a value.
const (
	eventWallTime    = 1 // double, seconds since 1970
	eventStep        = 2 // int64
	eventFileVersion = 3 // string
	eventSummary     = 5 // Summary
	eventSessionLog  = 7 // SessionLog

	summaryValue     = 1 // repeated Value
	valueTag         = 1 // string
	valueSimpleValue = 2 // float

	sessionStatus = 1 // enum
	sessionStart  = 1 // its value START
)

// event is the beginning of every Event.
func event(wallTime float64, step int) []byte {
	b := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(wallTime))
	b = protowire.AppendTag(b, eventStep, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(step))
}

// versionEvent begins a file.
func versionEvent(wallTime float64) []byte {
	b := protowire.AppendTag(event(wallTime, 0), eventFileVersion, protowire.BytesType)
	return protowire.AppendString(b, fileVersion)
}

// startEvent voids everything that was recorded before it of this step and
// later ones.
func startEvent(wallTime float64, step int) []byte {
	session := protowire.AppendTag(nil, sessionStatus, protowire.VarintType)
	session = protowire.AppendVarint(session, sessionStart)
	b := protowire.AppendTag(event(wallTime, step), eventSessionLog, protowire.BytesType)
	return protowire.AppendBytes(b, session)
}

// scalarsEvent holds all metrics of a line.
func scalarsEvent(wallTime float64, l runlog.Line) []byte {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(l.Values)) {
		value := protowire.AppendTag(nil, valueTag, protowire.BytesType)
		value = protowire.AppendString(value, l.Event+"/"+name)
		value = protowire.AppendTag(value, valueSimpleValue, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(l.Values[name])))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, value)
	}
	b := protowire.AppendTag(event(wallTime, l.Step), eventSummary, protowire.BytesType)
	return protowire.AppendBytes(b, summary)
}
