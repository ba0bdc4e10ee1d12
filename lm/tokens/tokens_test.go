package tokens

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func charsOf(t *testing.T, text string, separator bool) Tokenizer {
	t.Helper()
	var set CharSet
	set.Add([]byte(text))
	tok, err := set.Tokenizer(separator)
	require.NoError(t, err)
	return tok
}

func TestByte(t *testing.T) {
	b := Byte()
	require.Equal(t, 257, b.VocabSize())
	require.Equal(t, int32(256), b.Separator())
	require.Equal(t, []int32{0, 255, 97}, encode(b, "\x00\xffa"))
	require.Equal(t, "\x00\xffa", string(b.AppendBytes(nil, 0, 255, 256, 97, -1, 257)))
	require.Equal(t, []int{1, 0, 0}, []int{b.Len(255), b.Len(256), b.Len(-1)})
}

func TestChar(t *testing.T) {
	c := charsOf(t, "bca\nü日\xff", false)
	require.Equal(t, 7, c.VocabSize())
	require.Equal(t, int32(-1), c.Separator())
	require.Equal(t, []int32{1, 0, 5, 6, 4}, encode(c, "a\n日\xffü"))
	require.Equal(t, "日\xffa", string(c.AppendBytes(nil, 5, 6, 7, 1, -1)))
	require.Equal(t, []int{3, 1, 2, 0}, []int{c.Len(5), c.Len(6), c.Len(4), c.Len(7)})

	require.Equal(t, []int32{1, 2}, encode(c, "azb"), "unknown characters are left out")
	require.NoError(t, c.Check([]byte("abc\xff")))
	require.ErrorContains(t, c.Check([]byte("a日zé")), `character "z" at byte 4`)
	require.ErrorContains(t, c.Check([]byte("a\xfe")), `character "\xfe" at byte 1`)

	c = charsOf(t, "ba", true)
	require.Equal(t, 3, c.VocabSize())
	require.Equal(t, int32(2), c.Separator())
	require.Zero(t, c.Len(2))

	_, err := new(CharSet).Tokenizer(true)
	require.ErrorContains(t, err, "no characters")
}

func TestSaveLoad(t *testing.T) {
	for _, tok := range []Tokenizer{
		Byte(), GPT2(), charsOf(t, "hello <world> &\u2028\x00\ufffd", false), charsOf(t, "日\xff\x80a", true),
	} {
		var a, b bytes.Buffer
		require.NoError(t, Save(&a, tok))
		back, err := Load(bytes.NewReader(a.Bytes()))
		require.NoError(t, err, a.String())
		require.Equal(t, tok, back)
		require.NoError(t, Save(&b, back))
		require.Equal(t, a.String(), b.String())
	}
	for text, want := range map[string]string{
		``:                    "EOF",
		`{`:                   "EOF",
		`{}`:                  "kind (tokenizer) is missing",
		`{"tokenizer":"bpe"}`: `it is "bpe"`,
		`{"tokenizer":"byte","vocab_size":256,"separator":-1}`:                                         "expected 257 and 256",
		`{"tokenizer":"gpt2","vocab_size":50257,"separator":50256,"sha256":"00"}`:                      "gpt2 vocabulary has SHA-256 00",
		`{"tokenizer":"char","vocab_size":2,"separator":-1}`:                                           "no characters",
		`{"tokenizer":"char","vocab_size":2,"separator":-1,"characters":["a","a"]}`:                    `character 1 is "a"`,
		`{"tokenizer":"char","vocab_size":2,"separator":-1,"characters":["ab"]}`:                       `character 0 is "ab"`,
		`{"tokenizer":"char","vocab_size":2,"separator":-1,"characters":["b","a"]}`:                    "ascending",
		`{"tokenizer":"char","vocab_size":1,"separator":-1,"characters":["b"],"invalid_bytes":[5]}`:    "invalid_bytes holds 5",
		`{"tokenizer":"char","vocab_size":3,"separator":-1,"characters":["b","c"],"invalid_bytes":[]}`: "expected 2 and -1",
	} {
		_, err := Load(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}
