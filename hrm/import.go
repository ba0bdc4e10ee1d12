package hrm

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"deeploop/internal/kernel"
	"deeploop/internal/tensorfile"
)

// Names of tensors that a state dict has beside the model's parameters.
const (
	nameTokens = "embed_tokens.embedding_weight"
	nameHInit  = "H_init"
	nameLInit  = "L_init"
	nameTable  = puzzleTable
)

// passing are tensors that a state dict may have and no model needs: buffers
// of a batch, and tables that follow from the configuration.
var passing = []string{
	"puzzle_emb.local_weights", "puzzle_emb.local_ids", "rotary_emb.cos_cached", "rotary_emb.sin_cached", "rotary_emb.inv_freq",
}

// Foreign is a state dict of the reference code (sapientinc/HRM or
// SamsungSAILMontreal/TinyRecursiveModels, pretrain.py save_train_state): names
// as in Model behind a prefix such as "_orig_mod.model.inner.", weights fp32 or
// bf16.
type Foreign struct {
	// Prefix stands before all names.
	Prefix string
	// Ignored are tensors that no model needs, with their prefix.
	Ignored []string

	file *tensorfile.File
}

// OpenForeign recognises a state dict. What is something else is an error that
// says what, and which command takes it.
func OpenForeign(f *tensorfile.File) (*Foreign, error) {
	has := func(name string) bool { _, ok := f.Info(name); return ok }
	if len(f.Names()) == 0 {
		return nil, tensorfile.ImportErrorf("%s has no tensors: it is an empty state dict; take a checkpoint that the trainer saved", f.Path)
	}
	if has("puzzle_identifiers") && (has("logits") || has("preds")) {
		return nil, tensorfile.ImportErrorf("%s holds predictions, not weights; score it with hrm score --predictions %s --data DIR", f.Path, f.Path)
	}
	if has("blocks.0.attn.qkv.weight") {
		return nil, tensorfile.ImportErrorf("%s holds a language model; make a run of it with lm import", f.Path)
	}
	if filepath.Base(f.Path) == "weights.safetensors" && has(nameTokens) && !slices.ContainsFunc(f.Names(), func(n string) bool { return n == nameTable }) {
		return nil, tensorfile.ImportErrorf("%s is a part of a checkpoint of this program; evaluate that with hrm eval --checkpoint, or hand it on with hrm export", f.Path)
	}
	r := &Foreign{file: f}
	at := slices.IndexFunc(f.Names(), func(n string) bool { return strings.HasSuffix(n, nameTokens) })
	if at < 0 {
		return nil, tensorfile.ImportErrorf("%s is no checkpoint of HRM: none of its %d tensors is called %s; it has %s", f.Path, len(f.Names()), nameTokens, firstNames(f.Names()))
	}
	r.Prefix = strings.TrimSuffix(f.Names()[at], nameTokens)
	for _, p := range passing {
		if has(r.Prefix + p) {
			r.Ignored = append(r.Ignored, r.Prefix+p)
		}
	}
	return r, nil
}

// TRM reports whether the file holds one network for both levels.
func (r *Foreign) TRM() bool { return r.blocks("L_level") > 0 && r.blocks("H_level") == 0 }

// Preset returns the published configuration of the kind of model.
func (r *Foreign) Preset() TrainConfig {
	c := PresetHRMv1()
	if r.TRM() {
		c = PresetTRM()
	}
	if r.shape("L_level.layers.0.mlp_t.down_proj.weight", 2) != nil {
		c.Arch.MLPT, c.Arch.PosEncodings = true, PosNone
	}
	return c
}

func firstNames(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// shape returns that of a tensor by the model's name, nil where it is missing
// or has another number of dimensions.
func (r *Foreign) shape(name string, dims int) []int {
	in, ok := r.file.Info(r.Prefix + name)
	if !ok || len(in.Shape) != dims {
		return nil
	}
	return in.Shape
}

// blocks counts those of a module.
func (r *Foreign) blocks(module string) int {
	n := 0
	for r.shape(fmt.Sprintf(module+".layers.%d.mlp.down_proj.weight", n), 2) != nil {
		n++
	}
	return n
}

// Identifiers returns the rows of the task-embedding table, 0 without one.
func (r *Foreign) Identifiers() int {
	if s := r.shape(nameTable, 2); s != nil {
		return s[0]
	}
	return 0
}

// Deduced are the keys that Deduce sets. The others do not change a shape, so
// somebody must say them.
var Deduced = []string{
	"arch.mlp_t", "arch.hidden_size", "arch.expansion", "arch.H_layers", "arch.L_layers", "arch.puzzle_emb_ndim", "arch.pos_encodings",
}

// Undeduced are the keys of the architecture that a state dict does not show
// and that have no usual value.
var Undeduced = []string{"arch.num_heads", "arch.H_cycles", "arch.L_cycles", "arch.halt_max_steps"}

// Deduce sets what the shapes show: sizes, layers, positions, vocabulary. The
// rest of the configuration is base's, which is Preset's or like it. An
// expansion other than base's is one that gives the MLP's width.
func (r *Foreign) Deduce(base Config) (Config, error) {
	c := base
	tokens := r.shape(nameTokens, 2)
	down := r.shape("L_level.layers.0.mlp.down_proj.weight", 2)
	if tokens == nil || down == nil {
		return c, tensorfile.ImportErrorf("%s is no checkpoint of HRM: it has no %s of two dimensions", r.file.Path, r.Prefix+"L_level.layers.0.mlp.down_proj.weight")
	}
	c.VocabSize, c.HiddenSize = tokens[0], tokens[1]
	c.HLayers, c.LLayers = r.blocks("H_level"), r.blocks("L_level")
	if width := down[1]; c.HiddenSize > 0 && c.MLPWidth() != width {
		if c.Expansion = 1.5 * float64(width) / float64(c.HiddenSize); c.MLPWidth() != width {
			return c, tensorfile.ImportErrorf("%s: the MLPs have %d units, and the reference's are a multiple of 256", r.file.Path, width)
		}
	}
	c.PuzzleEmbDim = 0
	if s := r.shape(nameTable, 2); s != nil {
		c.PuzzleEmbDim = s[1]
	}
	if r.shape("embed_pos.embedding_weight", 2) != nil {
		c.PosEncodings = PosLearned
	} else if c.PosEncodings == PosLearned {
		c.PosEncodings = PosRope
	}
	return c, nil
}

// Model reads the weights into a model of fp32 masters. c has the dataset's
// sizes. Tensors that are missing, left over, or of another shape or type are
// all named. With mean set, a table with other rows than the dataset has
// identifiers gives each of them the mean of its rows.
func (r *Foreign) Model(c Config, mean bool) (*Model, error) {
	m, err := newModel(c, kernel.Float32, func(kernel.Buf, float64) {})
	if err != nil {
		return nil, err
	}
	rows := r.Identifiers()
	average := mean && rows > 0 && c.PuzzleEmbDim > 0 && rows != c.NumPuzzleIdentifiers
	wanted := m.foreignTensors(r.Prefix)
	if average { // the table's own rows fit too
		wanted[len(wanted)-1].Shape = []int{rows, c.PuzzleEmbDim}
	}
	if err := r.file.Fits(wanted, func(name string) bool { return slices.Contains(r.Ignored, name) }); err != nil {
		return nil, err
	}
	for _, t := range wanted {
		if t.Name == r.Prefix+nameTable && average {
			err = r.average(t.Data.Float32s(), rows, c.PuzzleEmbDim)
		} else {
			err = r.file.Read(t)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, p := range m.Params() {
		p.Changed()
	}
	return m, nil
}

// foreignTensors lists a model's tensors as the reference's state dict has
// them behind a prefix, in its order: buffers first, the table last.
func (m *Model) foreignTensors(prefix string) []tensorfile.Wanted {
	c := m.Config
	ts := []tensorfile.Wanted{
		{Name: prefix + nameHInit, Shape: []int{c.HiddenSize}, Data: m.HInit},
		{Name: prefix + nameLInit, Shape: []int{c.HiddenSize}, Data: m.LInit},
	}
	for _, p := range m.Params() {
		ts = append(ts, tensorfile.Wanted{Name: prefix + p.Name, Shape: p.Shape(), Data: p.Data})
	}
	if c.PuzzleEmbDim > 0 {
		ts = append(ts, tensorfile.Wanted{Name: prefix + nameTable, Shape: []int{c.NumPuzzleIdentifiers, c.PuzzleEmbDim}, Data: m.PuzzleTable})
	}
	return ts
}

// average gives every row of dst the mean of the file's rows.
func (r *Foreign) average(dst []float32, rows, dim int) error {
	sum := make([]float64, dim)
	at := 0
	err := r.file.Floats(r.Prefix+nameTable, func(part []float32) {
		for _, v := range part {
			sum[at] += float64(v)
			if at++; at == dim {
				at = 0
			}
		}
	})
	for i := range dst {
		dst[i] = float32(sum[i%dim] / float64(rows))
	}
	return err
}
