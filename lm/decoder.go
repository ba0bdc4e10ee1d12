package lm

import (
	"fmt"

	"deeploop/internal/graph"
	"deeploop/internal/kernel"
	"deeploop/internal/ops"
)

// Decoder runs a model over one sequence with a cache of keys and values for
// every executed visit: stored blocks see other states in each round, so a
// cache belongs to a block and a round (K·R of them). Not safe for concurrent
// use.
type Decoder struct {
	model   *Model
	backend kernel.Backend
	length  int
	caches  []*ops.KVCache // [R*K], by round and block
	current []*ops.KVCache // [K], what the graphs read: those of the present round
	chunks  []*chunk       // by size, the largest first
	logits  kernel.Buf     // [logitRows, V]
	row     []float32
}

// logitRows is how many positions have their logits at once.
const logitRows = 16

// chunkSizes are how many tokens a graph takes at once. A text is cut into
// them, the largest first.
var chunkSizes = []int{128, 16, 1}

// chunk is the graph of a fixed number of new tokens.
type chunk struct {
	n                   int
	tokens              []int32
	x                   kernel.Buf // [n, D], the state
	z                   kernel.Buf // [n, D], what the head reads
	embed, round, final *graph.Runner
}

// NewDecoder builds the graphs; the caches take
// 2·K·R·context·hidden_size activations.
func NewDecoder(m *Model, backend kernel.Backend) (*Decoder, error) {
	c := m.Config
	d := &Decoder{model: m, backend: backend, row: make([]float32, c.VocabSize)}
	for range c.Depth() {
		d.caches = append(d.caches, ops.NewKVCache(m.Act, c.NumHeads, c.Context, c.HeadDim()))
	}
	for _, first := range d.caches[:c.Layers] {
		kv := *first
		d.current = append(d.current, &kv)
	}
	d.logits = kernel.Alloc(m.Act.Master(), logitRows*c.VocabSize)
	for _, n := range chunkSizes {
		if n > c.Context {
			continue
		}
		k, err := d.newChunk(n)
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("build model graph: %w", err)
		}
		d.chunks = append(d.chunks, k)
	}
	return d, nil
}

func (d *Decoder) newChunk(n int) (*chunk, error) {
	m := d.model
	k := &chunk{n: n, tokens: make([]int32, n)}
	k.x = kernel.Alloc(m.Act, n*m.Config.HiddenSize)
	k.z = k.x
	state := func(b *graph.Builder) *graph.Node { return b.InputOf("x", k.x, n, m.Config.HiddenSize) }
	var err error
	b := graph.NewBuilder(d.backend, m.Act)
	b.Place(m.embed(b, k.tokens), k.x)
	if k.embed, err = b.Build(); err != nil {
		return nil, err
	}
	b = graph.NewBuilder(d.backend, m.Act)
	shape := m.shape(1, n)
	shape.Cos, shape.Sin = m.cos, m.sin // positions begin behind the cache
	b.Place(m.Blocks.ForwardCached(b, state(b), shape, d.current), k.x)
	if k.round, err = b.Build(); err != nil {
		return nil, err
	}
	if m.Config.HasFinalNorm() {
		k.z = kernel.Alloc(m.Act, k.x.Len())
		b = graph.NewBuilder(d.backend, m.Act)
		b.Place(m.final(b, state(b)), k.z)
		if k.final, err = b.Build(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Context is the most tokens a sequence may hold.
func (d *Decoder) Context() int { return d.model.Config.Context }

// VocabSize is the length of the logits. Ids from the tokenizer's vocabulary
// up to it were never trained.
func (d *Decoder) VocabSize() int { return d.model.Config.VocabSize }

// Len is the number of tokens in the cache.
func (d *Decoder) Len() int { return d.length }

// Reset forgets all but the first n tokens.
func (d *Decoder) Reset(n int) {
	if n < 0 || n > d.length {
		panic("lm: reset beyond the tokens of a decoder")
	}
	d.length = n
}

// Append adds ids and calls each (nil: never) for every added position i >=
// from, an index into ids, with the logits [V] of the token after it. The
// slice is valid during the call only. An error of each ends the run; the ids
// up to the end of its chunk have been added then.
func (d *Decoder) Append(ids []int32, from int, each func(i int, logits []float32) error) error {
	if d.length+len(ids) > d.Context() {
		return &ConfigError{Key: "sequence", Found: fmt.Sprintf("%d tokens long", d.length+len(ids)), Want: fmt.Sprintf("at most the model's context of %d", d.Context())}
	}
	for i, id := range ids {
		if id < 0 || int(id) >= d.VocabSize() {
			return &ConfigError{Key: fmt.Sprintf("token %d", i), Found: id, Want: fmt.Sprintf("an id below the vocabulary of %d", d.VocabSize())}
		}
	}
	for at := 0; at < len(ids); {
		k := d.chunkFor(len(ids) - at)
		if err := d.run(k, ids[at:at+k.n]); err != nil {
			return err
		}
		if each != nil {
			if err := d.read(k, at, from, each); err != nil {
				return err
			}
		}
		at += k.n
	}
	return nil
}

func (d *Decoder) chunkFor(n int) *chunk {
	for _, k := range d.chunks {
		if k.n <= n {
			return k
		}
	}
	panic("lm: no chunk of one token")
}

// run takes the tokens of a chunk through all rounds.
func (d *Decoder) run(k *chunk, ids []int32) error {
	copy(k.tokens, ids)
	if err := k.embed.Run(); err != nil {
		return err
	}
	for r := range d.model.Config.Loops {
		for i, c := range d.current {
			*c = *d.caches[r*len(d.current)+i]
			c.Past = d.length
		}
		if err := k.round.Run(); err != nil {
			return err
		}
	}
	if k.final != nil {
		if err := k.final.Run(); err != nil {
			return err
		}
	}
	d.length += k.n
	return nil
}

// read gives each the logits of the chunk's positions from on; at is the
// chunk's place among the ids.
func (d *Decoder) read(k *chunk, at, from int, each func(i int, logits []float32) error) error {
	width, v := d.model.Config.HiddenSize, d.VocabSize()
	for lo := max(from-at, 0); lo < k.n; lo += logitRows {
		hi := min(lo+logitRows, k.n)
		logits := d.logits.Slice(0, (hi-lo)*v)
		d.backend.Linear(logits, k.z.Slice(lo*width, hi*width), &d.model.Embed.Weight)
		for i := lo; i < hi; i++ {
			if err := each(at+i, d.floats(logits.Slice((i-lo)*v, (i-lo+1)*v))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Decoder) floats(b kernel.Buf) []float32 {
	if b.Type() == kernel.Float32 {
		return b.Float32s()
	}
	for i := range d.row {
		d.row[i] = float32(b.At(i))
	}
	return d.row
}

// Close releases the graphs.
func (d *Decoder) Close() {
	for _, k := range d.chunks {
		for _, r := range []*graph.Runner{k.embed, k.round, k.final} {
			if r != nil {
				r.Close()
			}
		}
	}
}
