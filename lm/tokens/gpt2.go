package tokens

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// gpt2Separator is <|endoftext|>.
const gpt2Separator = gpt2Vocab

type gpt2Tokenizer struct {
	splitter
	texts  []string // by id, without the separator
	ids    map[string]int32
	byteID [256]int32
	pairs  *pairTable
	sha256 string // over the lengths (32 bits, little-endian) and texts of all tokens
}

// GPT2 returns the byte-level BPE of GPT-2 with its vocabulary: 50,256 tokens
// and the separator, id 50256. It gives the ids of the published encoder for
// all valid UTF-8, and takes any other bytes, too. Pieces (words, numbers,
// runs of spaces) of more than 65,536 bytes are cut there; the text stays the
// same, the ids around such a cut may not.
func GPT2() Tokenizer { return gpt2() }

var gpt2 = sync.OnceValue(func() *gpt2Tokenizer {
	vocabulary := codec.NewR50kBase() // GPT-2's, as published by OpenAI
	t := &gpt2Tokenizer{splitter: splitter{classes()}, ids: make(map[string]int32, gpt2Vocab)}
	h := sha256.New()
	for id := range uint(gpt2Vocab) {
		text, err := vocabulary.Decode([]uint{id})
		if err != nil {
			panic(fmt.Sprintf("tokens: the embedded vocabulary has no token %d: %v", id, err))
		}
		t.texts = append(t.texts, text)
		t.ids[text] = int32(id)
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
		h.Write([]byte(text))
	}
	for b := range t.byteID {
		id, ok := t.ids[string([]byte{byte(b)})]
		if !ok {
			panic(fmt.Sprintf("tokens: the embedded vocabulary has no token for byte %d", b))
		}
		t.byteID[b] = id
	}
	t.pairs = newPairTable(t.texts, t.ids)
	t.sha256 = hex.EncodeToString(h.Sum(nil))
	return t
})

func (g *gpt2Tokenizer) Name() string     { return GPT2Name }
func (g *gpt2Tokenizer) VocabSize() int   { return gpt2Vocab + 1 }
func (g *gpt2Tokenizer) Separator() int32 { return gpt2Separator }

func (g *gpt2Tokenizer) Append(dst []int32, text []byte) []int32 {
	for i := 0; i < len(text); {
		j := g.next(text, i)
		piece := text[i:j]
		if id, ok := g.ids[string(piece)]; ok {
			dst = append(dst, id)
		} else {
			dst = g.appendMerged(dst, piece)
		}
		i = j
	}
	return dst
}

func (g *gpt2Tokenizer) AppendBytes(dst []byte, ids ...int32) []byte {
	for _, id := range ids {
		if id >= 0 && id < gpt2Vocab {
			dst = append(dst, g.texts[id]...)
		}
	}
	return dst
}

func (g *gpt2Tokenizer) Len(id int32) int {
	if id >= 0 && id < gpt2Vocab {
		return len(g.texts[id])
	}
	return 0
}

func (g *gpt2Tokenizer) Check([]byte) error  { return nil }
func (g *gpt2Tokenizer) Cut(text []byte) int { return g.cut(text) }
