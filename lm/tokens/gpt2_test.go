package tokens

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"

	"deeploop/internal/goldentest"
)

var peer = sync.OnceValue(codec.NewR50kBase)

// peerIDs are the ids of an encoder of others', for valid UTF-8.
func peerIDs(t testing.TB, text string) []int32 {
	t.Helper()
	found, _, err := peer().Encode(text)
	require.NoError(t, err)
	ids := make([]int32, len(found))
	for i, id := range found {
		ids[i] = int32(id)
	}
	return ids
}

func encode(t Tokenizer, text string) []int32 { return t.Append([]int32{}, []byte(text)) }

// T34: where spaces, contractions and classes of characters meet.
func TestT34GPT2EdgeCases(t *testing.T) {
	for text, want := range map[string][]int32{
		"":                            {},
		"a  b":                        {64, 220, 275},
		"I'LL":                        {40, 6, 3069},
		"I'll":                        {40, 1183},
		"\r\n\r\n":                    {201, 198, 201, 198},
		"a \n\n b":                    {64, 220, 628, 275},
		"\u00a0":                      {1849},
		"\x00":                        {188},
		"a\x7f":                       {64, 221},
		"Hello world":                 {15496, 995},
		" <|endoftext|>":              nil, // compared only
		"<|endoftext|>":               {27, 91, 437, 1659, 5239, 91, 29},
		"a\u00a0 b":                   nil,
		"\u2003\u2003x":               nil,
		"x\u0085y \u0085":             nil,
		"  '  's 's''s'S'RE're'v'l":   nil,
		"don't  ":                     nil,
		"\n \n a":                     nil,
		"１２３ ②Ⅷ12":                    nil,
		"e\u0301 日本語　テスト":             nil,
		"\ufffd x\ufeff":              nil,
		"👩‍👩‍👧 ok":                    nil,
		"\U00010400\U00010428 𝟘𝟙":     nil,
		"\t\tif x:\n\t\t\treturn 1\n": nil,
	} {
		got := encode(GPT2(), text)
		if want != nil {
			require.Equal(t, want, got, "%q", text)
		}
		if text != "a\x7f" { // the peer leaves this one out
			require.Equal(t, peerIDs(t, text), got, "%q", text)
		}
		require.Equal(t, text, string(GPT2().AppendBytes(nil, got...)))
	}
}

// T33: any bytes come back.
func TestT33GPT2InvalidUTF8(t *testing.T) {
	for text, want := range map[string]int{
		"\xff\xfea": 3, "\xff": 1, "a\xc3": 2, "\xe2\x82": 2, "\xed\xa0\x80x": -1, " \xff \xfe": -1, "\xf4\x90\x80\x80": -1, "é\xa9": -1,
	} {
		got := encode(GPT2(), text)
		require.Equal(t, text, string(GPT2().AppendBytes(nil, got...)), "%q", text)
		if want >= 0 {
			require.Len(t, got, want, "%q", text)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		text := make([]byte, r.IntN(300))
		for i := range text {
			text[i] = byte(r.IntN(256))
		}
		require.Equal(t, text, GPT2().AppendBytes([]byte{}, encode(GPT2(), string(text))...))
	}
}

// randomText mixes characters of all classes, scripts and lengths.
func randomText(r *rand.Rand, length int) string {
	words := []string{" ", " ", "  ", "\n", "\r\n", "\t", "'s", "'ll", "'", "''", "the", " and", "ing", "Zebra", "12", " 7", "...", "==", "é", "ß", "日本", "Ж", "٣", "²", "\u00a0", "\u2028", "\u3000", "e\u0301", "🙂", "\x00", "\x1c", "\u180e", "\u200b"}
	var b strings.Builder
	for b.Len() < length {
		switch r.IntN(4) {
		case 0:
			c := rune(r.IntN(utf8.MaxRune + 1))
			if r.IntN(2) == 0 {
				c = rune(r.IntN(0x3000))
			}
			if utf8.ValidRune(c) {
				b.WriteRune(c)
			}
		case 1:
			b.WriteString(strings.Repeat(words[r.IntN(len(words))], 1+r.IntN(5)))
		default:
			b.WriteString(words[r.IntN(len(words))])
		}
	}
	return b.String()
}

func TestGPT2MatchesPeer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		text := randomText(r, r.IntN(120))
		require.Equal(t, peerIDs(t, text), encode(GPT2(), text), "%q", text)
	}
	for range 200 { // pieces longer than are merged by search
		text := strings.Repeat(randomText(r, 8), 1+r.IntN(40))
		text = strings.ReplaceAll(text, " ", "")
		require.Equal(t, peerIDs(t, text), encode(GPT2(), text), "%q", text)
	}
	letters := make([]byte, 3000)
	for i := range letters {
		letters[i] = "etaoinshrdlu"[r.IntN(12)]
	}
	require.Equal(t, peerIDs(t, string(letters)), encode(GPT2(), string(letters)))
}

func FuzzGPT2(f *testing.F) {
	for _, s := range []string{"", "a  b", "I'LL", "\r\n\r\n", "a \n\n b", "\u00a0\x00", "\xff\xfea", "x 日本 12'll"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids := GPT2().Append(nil, text)
		if got := GPT2().AppendBytes(nil, ids...); !bytes.Equal(got, text) {
			t.Fatalf("%q came back as %q", text, got)
		}
		if utf8.Valid(text) && len(text) < 4096 && !bytes.Contains(text, []byte{0x7f}) { // which the peer leaves out
			require.Equal(t, peerIDs(t, string(text)), append([]int32{}, ids...))
		}
		checkCut(t, GPT2(), text, MinCut+3)
	})
}

// checkCut tokenizes text piece by piece, with size bytes to choose a cut in,
// and compares with the whole.
func checkCut(t testing.TB, tok Tokenizer, text []byte, size int) {
	t.Helper()
	want := tok.Append([]int32{}, text)
	got := []int32{}
	for at := 0; at < len(text); {
		end := min(at+size, len(text))
		n := end - at
		if end < len(text) {
			n = tok.Cut(text[at:end])
			if n == 0 {
				require.Less(t, end-at, MinCut)
				size *= 2
				continue
			}
		}
		got = tok.Append(got, text[at:at+n])
		at += n
	}
	require.Equal(t, want, got)
}

func TestCutsGiveTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var set CharSet
	var texts [][]byte
	for range 40 {
		texts = append(texts, []byte(randomText(r, 3000)))
	}
	for _, unit := range []string{" ", "\n", "a", "'", "'s", "é", "日", "\xff", "\xe2\x82", "1", "\u00a0", " \u2003", "a ", "ab' c"} {
		texts = append(texts, []byte("x"+strings.Repeat(unit, MinCut*5/4/len(unit))+"'s end"))
	}
	for _, text := range texts {
		set.Add(text)
	}
	chars, err := set.Tokenizer(false)
	require.NoError(t, err)
	for i, text := range texts {
		for _, tok := range []Tokenizer{Byte(), chars, GPT2()} {
			sizes := []int{7, 100, 1000}
			if i >= 40 {
				sizes = []int{MinCut, MinCut + 12345}
			}
			for _, size := range sizes {
				checkCut(t, tok, text, size)
			}
			require.Equal(t, string(text), string(tok.AppendBytes(nil, tok.Append(nil, text)...)))
		}
	}
}

// A piece of any length takes time that grows with its length only.
func TestGPT2LongPieces(t *testing.T) {
	for _, unit := range []string{" ", "a", "ab", "日本", "\n"} {
		text := strings.Repeat(unit, (1<<20)/len(unit))
		got := encode(GPT2(), text)
		require.Equal(t, text, string(GPT2().AppendBytes(nil, got...)))
	}
}

func TestGPT2InParallel(t *testing.T) {
	text := []byte(randomText(rand.New(rand.NewPCG(7, 8)), 20000))
	want := GPT2().Append(nil, text)
	var wg sync.WaitGroup
	got := make([][]int32, 8)
	for i := range got {
		wg.Go(func() { got[i] = GPT2().Append(nil, text) })
	}
	wg.Wait()
	for _, ids := range got {
		require.Equal(t, want, ids)
	}
}

func TestGPT2Shakespeare(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(goldentest.ARCData(t), "tinyshakespeare", "input.txt"))
	if err != nil {
		t.Skip("no tinyshakespeare")
	}
	cut := len(text) * 9 / 10
	require.Len(t, GPT2().Append(nil, text[:cut]), 301966) // as nanoGPT prepares it
	require.Len(t, GPT2().Append(nil, text[cut:]), 36059)
	require.Equal(t, peerIDs(t, string(text[:200000])), GPT2().Append(nil, text[:200000]))
}

func benchmarkGPT2(b *testing.B, text []byte) {
	GPT2()
	b.SetBytes(int64(len(text)))
	var ids []int32
	for b.Loop() {
		ids = GPT2().Append(ids[:0], text)
	}
}

func BenchmarkGPT2Shakespeare(b *testing.B) {
	text, err := os.ReadFile(filepath.Join(goldentest.ARCData(b), "tinyshakespeare", "input.txt"))
	if err != nil {
		b.Skip("no tinyshakespeare")
	}
	benchmarkGPT2(b, text)
}

func BenchmarkGPT2RandomUTF8(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 10))
	var text []byte
	for len(text) < 1<<20 {
		if c := rune(r.IntN(utf8.MaxRune + 1)); utf8.ValidRune(c) {
			text = utf8.AppendRune(text, c)
		}
	}
	benchmarkGPT2(b, text)
}

func BenchmarkGPT2OneWord(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 10))
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	benchmarkGPT2(b, text)
}
