package hrm

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
	"deeploop/internal/tensorfile"
	"deeploop/internal/torchfile"
)

// Where the reference's names begin: those of a model that torch.compile
// wrapped, which the reference's trainer and evaluator load compiled or not.
const (
	PlainPrefix    = "model.inner."
	CompiledPrefix = "_orig_mod." + PlainPrefix
)

// Mark is in every file that Export writes, so that it is known again.
const Mark = "deeploop hrm export"

// Format is a kind of file that weights are exported to.
type Format string

// The formats.
const (
	FormatReference   Format = "reference"   // state dict as torch.save writes it
	FormatSafetensors Format = "safetensors" // the same names, plain
)

// Export says how weights are written.
type Export struct {
	Format Format
	Prefix string // before the names of Model's parameters
	// States is the type of H_init and L_init. The reference has its
	// forward_dtype there, and computes in whatever type it finds: with its
	// usual bf16 and an fp32 state its attention fails. All other tensors are
	// fp32, as the reference's.
	States kernel.DType
}

// Referenced returns an error where the architecture has something that the
// reference code has not; its checkpoints could not say so.
func (c Config) Referenced() error {
	for _, f := range []struct {
		key   string
		found any
		plain bool
		has   string
	}{
		{"placement", c.Placement, c.Placement == PlacementPostNorm, PlacementPostNorm},
		{"norm_gain", c.NormGain, !c.NormGain, "false"},
		{"input_rms", c.InputRMS, !c.InputRMS, "false"},
		{"puzzle_emb_len", c.PuzzleEmbSlots, c.OneNetwork() || c.PuzzleEmbSlots == 0, "0"},
		{"no_ACT_continue", c.NoACTContinue, c.OneNetwork() || !c.NoACTContinue, "false"},
	} {
		if !f.plain {
			return &ConfigError{Key: "arch." + f.key, Found: f.found, Want: f.has + " for the reference code, which has nothing else; --format safetensors takes any model"}
		}
	}
	return nil
}

// Export writes all weights, initial states and task embeddings. It returns
// the largest change that rounding the states made.
func (m *Model) Export(w io.Writer, e Export) (rounded float64, err error) {
	ts := m.foreignTensors(e.Prefix)
	states := map[string]bool{e.Prefix + nameHInit: true, e.Prefix + nameLInit: true}
	dtype := func(t tensorfile.Wanted) string {
		if states[t.Name] && e.States == kernel.BFloat16 {
			return "BF16"
		}
		return "F32"
	}
	put := func(w io.Writer, t tensorfile.Wanted) error {
		if dtype(t) == "F32" {
			return writeFloats(w, t.Data)
		}
		half := make([]kernel.BF16, t.Data.Len())
		for i := range half {
			half[i] = kernel.ToBF16(float32(t.Data.At(i)))
			rounded = max(rounded, math.Abs(t.Data.At(i)-float64(half[i].Float32())))
		}
		return binary.Write(w, binary.LittleEndian, half)
	}
	if e.Format == FormatSafetensors {
		var entries []safetensors.Entry
		for _, t := range ts {
			entries = append(entries, safetensors.Entry{Name: t.Name, DType: dtype(t), Shape: t.Shape})
		}
		out, err := safetensors.NewWriter(w, map[string]string{"format": "pt", "program": Mark}, entries)
		if err != nil {
			return 0, fmt.Errorf("export: %w", err)
		}
		for _, t := range ts {
			if err := put(out, t); err != nil {
				return 0, fmt.Errorf("export: %w", err)
			}
		}
		return rounded, out.Finish()
	}
	var entries []torchfile.Entry
	for _, t := range ts {
		entries = append(entries, torchfile.Entry{Name: t.Name, DType: dtype(t), Shape: t.Shape})
	}
	err = torchfile.Write(w, Mark, entries, func(i int, w io.Writer) error { return put(w, ts[i]) })
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	return rounded, nil
}

// writeFloats writes fp32 masters as they are, and wider ones rounded.
func writeFloats(w io.Writer, b kernel.Buf) error {
	const part = 1 << 18
	for at := 0; at < b.Len(); at += part {
		s := b.Slice(at, min(at+part, b.Len()))
		if b.Type() != kernel.Float32 {
			wide := s
			s = kernel.Alloc(kernel.Float32, wide.Len())
			for i := range wide.Len() {
				s.SetAt(i, wide.At(i))
			}
		}
		if _, err := w.Write(s.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
