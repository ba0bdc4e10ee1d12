package view

import (
	"encoding/base64"
	"net/http"
	"strings"

	"deeploop/augment"
	"deeploop/deeploop"
	"deeploop/hrm"
)

// openModel is the model of a run with the last examples that it ran.
type openModel struct {
	*Model
	names  *names
	traces []*traced // the longest unused first
}

// traced is an example that a model ran.
type traced struct {
	split string
	row   int
	*hrm.Trace
}

// withModel calls use with the model of a run while nothing else computes. One
// model at a time is open: large ones hold gigabytes.
func (s *Server) withModel(r *http.Request, use func(m *openModel) error) error {
	it, err := s.items.of(r, KindRun)
	if err != nil {
		return err
	}
	if s.Model == nil {
		return notFound("models are not shown here")
	}
	return s.alone(r.Context(), func() error {
		s.items.mu.Lock()
		others := append([]*item(nil), s.items.list...)
		s.items.mu.Unlock()
		for _, other := range others { // only here is a model opened or closed
			if other != it && other.model != nil {
				other.model.Close()
				other.model = nil
			}
		}
		if it.model == nil {
			m, err := s.Model(r.Context(), it.Path, it.Data)
			if err != nil {
				return err
			}
			n, err := openNames(m.Data)
			if err != nil {
				m.Close()
				return err
			}
			it.model = &openModel{Model: m, names: n}
		}
		return use(it.model)
	})
}

// splitSize is how much a split holds.
type splitSize struct {
	Examples int `json:"examples"`
	Groups   int `json:"groups"`
}

func (s *Server) describeModel(r *http.Request) (any, error) {
	var v any
	err := s.withModel(r, func(m *openModel) error {
		c := m.Probe.Config()
		calls := []string{}
		blocks := map[string]int{deeploop.H.String(): c.Blocks(deeploop.H), deeploop.L.String(): c.Blocks(deeploop.L)}
		for _, module := range m.Probe.Calls() {
			calls = append(calls, module.String())
		}
		v = map[string]any{
			"checkpoint": m.Checkpoint, "step": m.Step, "weights": m.Weights, "kernel": m.Kernel,
			"segments": c.HaltMaxSteps, "calls": calls, "blocks": blocks, "heads": c.NumHeads, "hidden": c.HiddenSize, "parameters": c.NumParams(),
			"prefix": c.PuzzleEmbLen(), "dataset": m.Data.Dir, "data": s.items.withPath(KindDataset, m.Data.Dir),
			"splits": map[string]splitSize{"train": {m.Data.Train.Examples(), m.Data.Train.Groups()}, "test": {m.Data.Test.Examples(), m.Data.Test.Groups()}},
		}
		return nil
	})
	return v, err
}

// example finds the example that a request names and runs it unless it is
// among the last.
func (m *openModel) example(r *http.Request) (split *augment.Split, puzzle int, t *traced, err error) {
	if split, err = splitOf(m.Data, r.PathValue("split")); err != nil {
		return nil, 0, nil, err
	}
	row, err := number(r, "row", split.Examples())
	if err != nil {
		return nil, 0, nil, err
	}
	puzzle = split.PuzzleOf(row)
	for i, t := range m.traces {
		if t.split == split.Name && t.row == row {
			m.traces = append(append(m.traces[:i:i], m.traces[i+1:]...), t)
			return split, puzzle, t, nil
		}
	}
	trace, err := m.Probe.Row(r.Context(), split, row, puzzle)
	if err != nil {
		return nil, 0, nil, err
	}
	t = &traced{split: split.Name, row: row, Trace: trace}
	m.traces = append(m.traces, t)
	if len(m.traces) > openTraces {
		m.traces = append([]*traced(nil), m.traces[1:]...)
	}
	return split, puzzle, t, nil
}

// segmentView is the answer after one segment.
type segmentView struct {
	Canvas    string  `json:"canvas"`
	QHalt     float64 `json:"q_halt"`     // logit
	QContinue float64 `json:"q_continue"` // logit
	Halts     bool    `json:"halts"`      // a training would stop here
	Right     int     `json:"right"`      // labelled cells that are right
	Changed   int     `json:"changed"`    // tokens that are not as after the segment before
}

func (s *Server) trace(r *http.Request) (any, error) {
	var v any
	err := s.withModel(r, func(m *openModel) error {
		split, puzzle, t, err := m.example(r)
		if err != nil {
			return err
		}
		ex, err := examples(split, t.row, t.row+1)
		if err != nil {
			return err
		}
		names, err := m.names.open()
		if err != nil {
			return err
		}
		defer names.close()
		name, err := names.name(split.PuzzleIdentifiers[puzzle])
		if err != nil {
			return err
		}
		segments := make([]segmentView, len(t.Segments))
		labelled := 0
		for k, seg := range t.Segments {
			view := segmentView{Canvas: canvasText(seg.Tokens), QHalt: seg.QHalt, QContinue: seg.QContinue, Halts: seg.Halts}
			for i := range seg.Tokens {
				if ex[0].Label[i] != '.' {
					if k == 0 {
						labelled++
					}
					if view.Canvas[i] == ex[0].Label[i] {
						view.Right++
					}
				}
				if k > 0 && seg.Tokens[i] != t.Segments[k-1].Tokens[i] {
					view.Changed++
				}
			}
			segments[k] = view
		}
		first := int(split.PuzzleIndices[puzzle])
		v = map[string]any{
			"name": name, "row": t.row, "split": split.Name, "example": t.row - first, "examples": int(split.PuzzleIndices[puzzle+1]) - first, "first": first,
			"side": sideOfCanvas(split.SeqLen), "input": ex[0].Input, "label": strings.TrimSpace(ex[0].Label), "labelled": labelled, "segments": segments,
		}
		return nil
	})
	return v, err
}

// attentionView is a map of weights [N, N] in bytes: weight = byte/255 * Scale
// of its row.
type attentionView struct {
	N      int       `json:"n"`
	Prefix int       `json:"prefix"` // positions of the task embedding, in front
	Scale  []float32 `json:"scale"`
	Data   string    `json:"data"` // base64
}

func (s *Server) attention(r *http.Request) (any, error) {
	at := map[string]int{}
	for _, p := range []struct {
		name         string
		least, unset int
	}{{"segment", 0, 0}, {"call", 0, 0}, {"block", 0, 0}, {"head", -1, -1}} {
		n, err := query(r, p.name, p.least, p.unset)
		if err != nil {
			return nil, err
		}
		at[p.name] = n
	}
	var v attentionView
	err := s.withModel(r, func(m *openModel) error {
		_, _, t, err := m.example(r)
		if err != nil {
			return err
		}
		w, err := m.Probe.Attention(t.Trace, at["segment"], at["call"], at["block"], at["head"])
		if err != nil {
			return badRequest("%v", err)
		}
		c := m.Probe.Config()
		v = quantize(w, c.Positions())
		v.Prefix = c.PuzzleEmbLen()
		return nil
	})
	return v, err
}

// quantize brings weights [n, n] to bytes, row by row.
func quantize(w []float32, n int) attentionView {
	v := attentionView{N: n, Scale: make([]float32, n)}
	raw := make([]byte, n*n)
	for q := range n {
		row := w[q*n : (q+1)*n]
		top := float32(0)
		for _, x := range row {
			top = max(top, x)
		}
		v.Scale[q] = top
		if top == 0 {
			continue
		}
		for i, x := range row {
			raw[q*n+i] = byte(x/top*255 + 0.5)
		}
	}
	v.Data = base64.StdEncoding.EncodeToString(raw)
	return v
}
