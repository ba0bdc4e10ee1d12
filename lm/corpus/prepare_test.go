package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"deeploop/internal/goldentest"
	"deeploop/lm/tokens"
)

func settings(tokenizer string) Settings {
	s := DefaultSettings()
	s.Tokenizer = tokenizer
	return s
}

// prepare prepares and opens.
func prepare(t testing.TB, set Settings, inputs ...string) *Dataset {
	t.Helper()
	out := filepath.Join(t.TempDir(), "set")
	m, err := Prepare(context.Background(), inputs, out, Options{Settings: set, Program: "test"})
	require.NoError(t, err)
	d, err := Open(out)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	require.Equal(t, *m, d.Manifest)
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return d
}

func decode(t testing.TB, d *Dataset, s *Split) string {
	t.Helper()
	return string(d.Tokenizer.AppendBytes(nil, all(t, s)...))
}

// decodeDocuments cuts at separators.
func decodeDocuments(t testing.TB, d *Dataset, s *Split) []string {
	t.Helper()
	var docs []string
	var text []byte
	for i, id := range all(t, s) {
		if id == d.Tokenizer.Separator() {
			if i > 0 {
				docs = append(docs, string(text))
			}
			text = text[:0]
			continue
		}
		text = d.Tokenizer.AppendBytes(text, id)
	}
	if s.Len() > 0 {
		docs = append(docs, string(text))
	}
	return docs
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zst(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

type row struct {
	ID   int64   `parquet:"id"`
	Text *string `parquet:"text,optional,dict"`
	Body string  `parquet:"body,zstd"`
}

func parquetOf(t testing.TB, groupRows int, texts ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(int64(groupRows)), parquet.PageBufferSize(64))
	for i, s := range texts {
		r := row{ID: int64(i), Body: "body " + s}
		if s != "" {
			r.Text = &s
		}
		_, err := w.Write([]row{r})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func jsonlOf(texts ...string) []byte {
	var b bytes.Buffer
	for i, s := range texts {
		line, _ := json.Marshal(map[string]any{"n": i, "text": s})
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// Documents come out as they went in, from every kind of file.
func TestPrepareEveryKind(t *testing.T) {
	docs := []string{"first\ndocument\n", "", "zweites, größer", "日本語 text", strings.Repeat("long words ", 2000), "<|endoftext|> is text", " ", "last"}
	var texts []string
	for _, s := range docs {
		if s != "" {
			texts = append(texts, s)
		}
	}
	dir := t.TempDir()
	for i, s := range docs {
		write(t, dir, fmt.Sprintf("text/%d.txt", i), []byte(s))
		write(t, dir, fmt.Sprintf("gz/a/%d.txt.gz", i), gz([]byte(s)))
		write(t, dir, fmt.Sprintf("zst/%d.md.zst", i), zst([]byte(s)))
	}
	write(t, dir, "text/.hidden.txt", []byte("no"))
	write(t, dir, "text/picture.png", []byte("no"))
	lines := jsonlOf(docs...)
	inputs := map[string]string{
		"text": filepath.Join(dir, "text"), "gz": filepath.Join(dir, "gz"), "zst": filepath.Join(dir, "zst"),
		"jsonl":       write(t, dir, "x.jsonl", lines),
		"jsonl gz":    write(t, dir, "x.jsonl.gz", append(gz(lines[:50]), gz(lines[50:])...)),
		"ndjson zst":  write(t, dir, "x.ndjson.zst", zst(bytes.TrimSuffix(lines, []byte("\n")))),
		"windows":     write(t, dir, "w.jsonl", append([]byte("\ufeff"), bytes.ReplaceAll(lines, []byte("\n"), []byte("\r\n\r\n"))...)),
		"parquet":     write(t, dir, "x.parquet", parquetOf(t, 3, docs...)),
		"parquet zst": write(t, dir, "x.parquet.zst", zst(parquetOf(t, 1000, docs...))),
	}
	for _, tokenizer := range []string{tokens.ByteName, tokens.CharName, tokens.GPT2Name} {
		var hash string
		for name, input := range inputs {
			d := prepare(t, settings(tokenizer), input)
			if hash == "" {
				hash = d.Hash
			}
			require.Equal(t, hash, d.Hash, "%s %s", tokenizer, name)
			train, val := decodeDocuments(t, d, d.Train), decodeDocuments(t, d, d.Val)
			require.Len(t, val, 1, "with few documents the one of the lowest hash")
			rest := append([]string(nil), texts...)
			for i, s := range rest {
				if s == val[0] {
					rest = append(rest[:i], rest[i+1:]...)
					break
				}
			}
			require.Equal(t, rest, train, "%s %s", tokenizer, name)
			m := d.Manifest
			require.Equal(t, int64(1), m.EmptyDocuments)
			require.Equal(t, int64(len(docs)), m.Inputs[0].Documents)
			require.Equal(t, int64(len(texts)), m.Train.Documents+m.Val.Documents)
			require.Equal(t, int64(len(strings.Join(texts, ""))), m.Train.Bytes+m.Val.Bytes)
			require.Equal(t, name == "text", len(m.Warnings) == 1, m.Warnings)
		}
	}
	set := settings(tokens.ByteName)
	set.TextKey = "body"
	d := prepare(t, set, inputs["parquet"])
	require.Contains(t, append(decodeDocuments(t, d, d.Train), decodeDocuments(t, d, d.Val)...), "body ")
}

// A single document has no separator, and its last part is val.
func TestPrepareSingleDocument(t *testing.T) {
	text := strings.Repeat("0123456789", 1000) + "日"
	path := write(t, t.TempDir(), "a.txt", []byte(text))
	for tokenizer, vocab := range map[string]int{tokens.ByteName: 257, tokens.CharName: 11, tokens.GPT2Name: 50257} {
		d := prepare(t, settings(tokenizer), path)
		require.Equal(t, vocab, d.Tokenizer.VocabSize())
		require.Equal(t, text[:9002], decode(t, d, d.Train))
		require.Equal(t, text[9002:], decode(t, d, d.Val))
		require.Equal(t, SingleValFraction, d.Manifest.Settings.ValFraction)
	}
	set := settings(tokens.CharName)
	set.ValFraction = 0.0001 // inside the last character
	d := prepare(t, set, path)
	require.Equal(t, "日", decode(t, d, d.Val))
	set.ValFraction = 0
	d = prepare(t, set, path)
	require.Zero(t, d.Val.Len())
	require.Equal(t, text, decode(t, d, d.Train))

	one := write(t, t.TempDir(), "one.jsonl.gz", gz(jsonlOf("", text, "")))
	d = prepare(t, settings(tokens.ByteName), one)
	require.Equal(t, text[9002:], decode(t, d, d.Val))
	require.Equal(t, int64(2), d.Manifest.EmptyDocuments)

	d = prepare(t, settings(tokens.ByteName), write(t, t.TempDir(), "b.txt", []byte("x")))
	require.Equal(t, "x", decode(t, d, d.Train))
	require.Len(t, d.Manifest.Warnings, 1)
}

// T33: invalid UTF-8 is kept.
func TestT33PrepareInvalidUTF8(t *testing.T) {
	text := strings.Repeat("caf\xe9 \xff\xfe \xe2\x82", 50_000)
	path := write(t, t.TempDir(), "latin.txt.gz", gz([]byte(text)))
	for _, tokenizer := range []string{tokens.ByteName, tokens.CharName, tokens.GPT2Name} {
		d := prepare(t, settings(tokenizer), path)
		require.Equal(t, text, decode(t, d, d.Train)+decode(t, d, d.Val), tokenizer)
	}
}

// randomDocuments are of all sizes, some longer than a chunk.
func randomDocuments(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{"the ", "loop ", "\n\n", "Größe ", "12", "'s ", "日本", "  ", "x", "\u00a0"}
	docs := make([]string, n)
	for i := range docs {
		length := r.IntN(3000)
		if i%40 == 7 {
			length = chunkBytes*2 + r.IntN(chunkBytes)
		}
		var b strings.Builder
		for b.Len() < length {
			b.WriteString(words[r.IntN(len(words))])
		}
		docs[i] = b.String()
	}
	return docs
}

// The same input gives the same bytes, on any number of threads and in any
// folder; chunks do not show in the tokens.
func TestPrepareIsDeterministic(t *testing.T) {
	docs := randomDocuments(1, 120)
	var want map[string]string
	for _, threads := range []int{1, 2, 7} {
		path := write(t, t.TempDir(), "x.jsonl", jsonlOf(docs...))
		out := filepath.Join(t.TempDir(), "set")
		set := settings(tokens.GPT2Name)
		set.ValFraction, set.ShardTokens = 0.2, 100_003
		_, err := Prepare(context.Background(), []string{path}, out, Options{Settings: set, Threads: threads})
		require.NoError(t, err)
		got := tree(t, out)
		if want == nil {
			want = got
			require.Greater(t, len(got), 8)
		}
		require.Equal(t, want, got)

		d, err := Open(out)
		require.NoError(t, err)
		var train, val []int32
		below := belowOf(0.2)
		for _, s := range docs {
			if s == "" {
				continue
			}
			dst := &train
			if docKey(set.Seed, []byte(s[:min(len(s), headBytes)])) < below {
				dst = &val
			}
			*dst = d.Tokenizer.Append(append(*dst, d.Tokenizer.Separator()), []byte(s))
		}
		require.Equal(t, train, all(t, d.Train))
		require.Equal(t, val, all(t, d.Val))
		require.InDelta(t, 24, d.Manifest.Val.Documents, 15)
		require.NoError(t, d.Close())
	}
	path := write(t, t.TempDir(), "x.jsonl", jsonlOf(docs...))
	set := settings(tokens.ByteName)
	set.ValFraction = 0.2
	a := prepare(t, set, path)
	set.Seed = 1
	b := prepare(t, set, path)
	require.NotEqual(t, a.Hash, b.Hash, "another seed, another split")
	require.Equal(t, a.Manifest.Train.Bytes+a.Manifest.Val.Bytes, b.Manifest.Train.Bytes+b.Manifest.Val.Bytes)

	same := prepare(t, set, write(t, t.TempDir(), "s.jsonl", jsonlOf("a", "a", "a")))
	require.Zero(t, same.Val.Len())
	require.Contains(t, same.Manifest.Warnings[0], "all 3 documents are the same")
	set.ValFraction = 0.99
	most := prepare(t, set, write(t, t.TempDir(), "m.jsonl", jsonlOf("a", "b")))
	require.Equal(t, int64(1), most.Manifest.Train.Documents)
}

func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		found[e.Name()] = string(b)
	}
	return found
}

// What is wrong with an input is said with its file and place, and nothing is
// left behind.
func TestPrepareBadInputs(t *testing.T) {
	dir := t.TempDir()
	good := jsonlOf(randomDocuments(2, 20)...)
	table := parquetOf(t, 5, randomDocuments(3, 20)...)
	damaged := bytes.Clone(table)
	for i := 100; i < 400; i++ {
		damaged[i] ^= 0x55
	}
	write(t, dir, "empty-folder/picture.png", []byte("x"))
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"cut.txt.gz":     {gz(good)[:200], "the gzip data is cut or damaged"},
		"cut.jsonl.gz":   {gz(good)[:len(gz(good))/2], "the gzip data is cut or damaged"},
		"no.txt.gz":      {[]byte("plain text"), "not gzip"},
		"nothing.txt.gz": {nil, "it is empty, expected gzip"},
		"cut.jsonl.zst":  {zst(good)[:len(zst(good))/2], "the zstd data is cut or damaged"},
		"no.txt.zst":     {[]byte("plain text"), "the zstd data is cut or damaged"},
		"cut.parquet":    {table[:len(table)/2], "not parquet, or cut or damaged"},
		"no.parquet":     {[]byte("plain text that is no table"), "not parquet"},
		"none.parquet":   {nil, "not parquet"},
		"bad.parquet":    {damaged, "the parquet data is"},
		"bad.jsonl":      {[]byte("{\"text\":\"a\"}\n\n{\"text\": nope}\n"), "line 3: byte 11 of the line: not JSON"},
		"half.jsonl":     {[]byte(`{"text":"a"`), "line 1: byte 11 of the line: not JSON"},
		"array.jsonl":    {[]byte(`["text"]`), "line 1: it is a JSON array, expected an object"},
		"key.jsonl":      {[]byte("{\"text\":\"a\"}\n{\"b\":1,\"a\":2}\n"), `line 2: the object has no key "text" (it has a, b); choose one with --text-key`},
		"number.jsonl":   {[]byte(`{"text":17}`), `line 1: the value of "text" is no string: 17`},
		"latin.jsonl":    {[]byte("{\"text\":\"caf\xe9\"}"), "line 1: byte 13 of the line is not UTF-8"},
		"x.json":         {[]byte(`{}`), ".json is not read"},
		"empty.txt":      {nil, "there is no text in the input"},
		"nulls.jsonl":    {[]byte("{\"text\":null}\n{\"text\":\"\"}\n"), "there is no text in the input"},
	} {
		path := write(t, dir, name, c.content)
		for _, tokenizer := range []string{tokens.ByteName, tokens.CharName} {
			parent := t.TempDir()
			set := settings(tokenizer)
			_, err := Prepare(context.Background(), []string{path}, filepath.Join(parent, "set"), Options{Settings: set})
			require.ErrorContains(t, err, c.want, name)
			require.ErrorAs(t, err, new(*InputError), name)
			if !strings.Contains(c.want, "no text") {
				require.ErrorContains(t, err, path)
			}
			left, err := os.ReadDir(parent)
			require.NoError(t, err)
			require.Empty(t, left, name)
		}
	}
	set := settings(tokens.ByteName)
	set.TextKey = "id"
	wrongColumn := write(t, dir, "x.parquet", table)
	_, err := Prepare(context.Background(), []string{wrongColumn}, filepath.Join(dir, "o"), Options{Settings: set})
	require.ErrorContains(t, err, `column "id" holds no text`)
	set.TextKey = "gone"
	_, err = Prepare(context.Background(), []string{wrongColumn}, filepath.Join(dir, "o"), Options{Settings: set})
	require.ErrorContains(t, err, `there is no column "gone" (there are id, text, body)`)
	for want, inputs := range map[string][]string{
		"no input":               nil,
		"no such file":           {filepath.Join(dir, "nowhere")},
		"no text in this folder": {filepath.Join(dir, "empty-folder")},
		"not a regular file":     {os.DevNull},
	} {
		_, err := Prepare(context.Background(), inputs, filepath.Join(dir, "o"), Options{Settings: settings(tokens.ByteName)})
		require.ErrorContains(t, err, want)
	}
	for want, change := range map[string]func(*Settings){
		`tokenizer is "bpe"`:  func(s *Settings) { s.Tokenizer = "bpe" },
		"text-key is empty":   func(s *Settings) { s.TextKey = "" },
		"val-fraction is 1":   func(s *Settings) { s.ValFraction = 1 },
		"shard-tokens is 0":   func(s *Settings) { s.ShardTokens = 0 },
		"shard-tokens is 999": func(s *Settings) { s.ShardTokens = 9999999999 },
	} {
		s := settings(tokens.ByteName)
		change(&s)
		require.ErrorContains(t, s.Check(), want)
	}
	d := prepare(t, settings(tokens.ByteName), write(t, dir, "surrogate.jsonl", []byte(`{"text":"a\ud800b \ufffd"}`)))
	require.Contains(t, d.Manifest.Warnings[0], "1 documents escape half a character")
}

// A huge line is read; one beyond the limit is an error.
func TestPrepareHugeLine(t *testing.T) {
	text := strings.Repeat("word ", 2<<20)
	d := prepare(t, settings(tokens.ByteName), write(t, t.TempDir(), "x.jsonl", jsonlOf("a", text)))
	require.Equal(t, int64(len(text)+1), d.Manifest.Train.Bytes+d.Manifest.Val.Bytes)
}

// A cancelled Prepare leaves nothing; an existing dataset stays.
func TestPrepareInterrupted(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "set")
	path := write(t, t.TempDir(), "x.jsonl", jsonlOf(randomDocuments(4, 200)...))
	opt := Options{Settings: settings(tokens.GPT2Name)}
	for _, existing := range []bool{false, true} {
		if existing {
			small := write(t, t.TempDir(), "a.txt", []byte("hello world, hello"))
			_, err := Prepare(context.Background(), []string{small}, out, opt)
			require.NoError(t, err)
		}
		for _, phase := range []string{"looking through", "tokenizing"} {
			ctx, cancel := context.WithCancel(context.Background())
			calls := 0
			opt.Force = true
			opt.Progress = func(name string, done, total int64) {
				require.LessOrEqual(t, done, total)
				if calls++; name == phase && calls > 1 {
					cancel()
				}
			}
			_, err := Prepare(ctx, []string{path}, out, opt)
			require.ErrorIs(t, err, context.Canceled, phase)
			entries, err := os.ReadDir(parent)
			require.NoError(t, err)
			if existing {
				require.Len(t, entries, 1)
				d, err := Open(out)
				require.NoError(t, err)
				require.Equal(t, int64(18), d.Manifest.Train.Bytes+d.Manifest.Val.Bytes)
				require.NoError(t, d.Close())
			} else {
				require.Empty(t, entries)
			}
		}
	}
	// What a killed process leaves is no dataset and goes with the next one.
	opt.Progress = nil
	stale := filepath.Join(parent, ".set.building-123")
	write(t, stale, "dataset/train_000.bin", []byte("x"))
	_, err := Open(stale)
	require.ErrorIs(t, err, ErrNotDataset)
	require.NoError(t, os.Rename(out, filepath.Join(stale, "old"))) // killed between two renames
	opt.Force = false
	_, err = Prepare(context.Background(), []string{path}, out, opt)
	require.ErrorContains(t, err, "use --force", "the old one is back")
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	opt.Force = true
	_, err = Prepare(context.Background(), []string{path}, out, opt)
	require.NoError(t, err)
}

func TestFilesWithoutEndAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := &shardWriter{dir: t.TempDir(), split: "train", width: 2, most: 1}
	require.ErrorIs(t, w.put(ctx, segment{}, make([]int32, 10)), context.Canceled)
	entries, err := os.ReadDir(w.dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestPrepareTargets(t *testing.T) {
	parent := t.TempDir()
	path := write(t, parent, "a.txt", []byte("hello world, hello"))
	try := func(out string, force bool) error {
		_, err := Prepare(context.Background(), []string{path}, out, Options{Settings: settings(tokens.ByteName), Force: force})
		return err
	}
	out := filepath.Join(parent, "new", "set")
	require.NoError(t, try(out, false))
	require.ErrorContains(t, try(out, false), "use --force to replace it")
	require.NoError(t, try(out, true))
	write(t, out, "notes.txt", []byte("mine"))
	require.ErrorContains(t, try(out, true), "also holds files that lm prepare did not write (notes.txt)")
	foreign := filepath.Dir(write(t, t.TempDir(), "train.bin", raw(false, 2, 1)))
	require.ErrorContains(t, try(foreign, true), "never overwritten")
	require.ErrorContains(t, try(path, true), "is not a folder")
	require.ErrorContains(t, try("", true), "--out")
	empty := t.TempDir()
	require.NoError(t, try(empty, false))
}

// A dataset that is not as written is refused or found by Verify.
func TestOpenDamaged(t *testing.T) {
	path := write(t, t.TempDir(), "a.txt", []byte(strings.Repeat("hello world ", 100)))
	for name, c := range map[string]struct {
		damage func(dir string)
		want   string
		verify bool
	}{
		"cut":       {func(dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, "train_000.bin"), 2000)) }, "it is cut or damaged", false},
		"shard":     {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "val_000.bin"))) }, "val_000.bin", false},
		"other":     {func(dir string) { write(t, dir, "val_000.bin", raw(true, 2, 1, 2)) }, "it has 2 tokens in 1028 bytes, manifest.json says 120 in 1264", false},
		"header":    {func(dir string) { write(t, dir, "val_000.bin", make([]byte, 1264)) }, "it has 632 tokens", false},
		"tokenizer": {func(dir string) { write(t, dir, TokenizerName, []byte("{}")) }, "tokenizer", false},
		"kind": {func(dir string) {
			var b bytes.Buffer
			require.NoError(t, tokens.Save(&b, tokens.GPT2()))
			write(t, dir, TokenizerName, b.Bytes())
		}, "is of a gpt2 tokenizer", false},
		"bit": {func(dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "train_000.bin"))
			require.NoError(t, err)
			b[1500] ^= 1
			write(t, dir, "train_000.bin", b)
		}, "train_000.bin: SHA-256", true},
		"id": {func(dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "train_000.bin"))
			require.NoError(t, err)
			b[1501] = 9
			write(t, dir, "train_000.bin", b)
		}, "token 238, at byte 1500, is", true},
	} {
		out := filepath.Join(t.TempDir(), "set")
		_, err := Prepare(context.Background(), []string{path}, out, Options{Settings: settings(tokens.ByteName)})
		require.NoError(t, err)
		c.damage(out)
		d, err := Open(out)
		if !c.verify {
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Contains(t, strings.Join(problems, "\n"), c.want)
		require.NoError(t, d.Close())
	}
	d, err := Open(write(t, t.TempDir(), "x.bin", raw(true, 2, append(make([]uint32, 1<<17), 60000)...)))
	require.NoError(t, err)
	problems, err := d.Verify(context.Background(), func(done, total int64) { require.LessOrEqual(t, done, total) })
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.NoError(t, d.Close())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = d.Verify(ctx, nil)
	require.True(t, errors.Is(err, context.Canceled))
}

// nanoGPT's counts of its smallest data set.
func TestPrepareShakespeare(t *testing.T) {
	path := filepath.Join(goldentest.ARCData(t), "tinyshakespeare", "input.txt")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no tinyshakespeare")
	}
	d := prepare(t, settings(tokens.CharName), path)
	require.Equal(t, 65, d.Tokenizer.VocabSize())
	require.Equal(t, int64(1003854), d.Train.Len())
	require.Equal(t, int64(111540), d.Val.Len())
	d = prepare(t, settings(tokens.GPT2Name), path)
	require.Equal(t, int64(301966), d.Train.Len())
	require.Equal(t, int64(36059), d.Val.Len())
}

// A flipped token is found without reading tokens, unless the dataset is too
// large to look.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	text, out := filepath.Join(dir, "a.txt"), filepath.Join(dir, "data")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not ", 50)), 0o644))
	_, err := Prepare(t.Context(), []string{text}, out, Options{Settings: DefaultSettings()})
	require.NoError(t, err)
	check := func(most int64) (bool, error) {
		d, err := Open(out)
		require.NoError(t, err)
		defer d.Close()
		return d.CheckFiles(t.Context(), most)
	}
	checked, err := check(1 << 20)
	require.NoError(t, err)
	require.True(t, checked)
	shard := filepath.Join(out, "train_000.bin")
	b, err := os.ReadFile(shard)
	require.NoError(t, err)
	b[headerBytes] ^= 1
	require.NoError(t, os.WriteFile(shard, b, 0o644))
	_, err = check(1 << 20)
	require.ErrorContains(t, err, "train_000.bin: SHA-256 is")
	var bad *InputError
	require.ErrorAs(t, err, &bad)
	checked, err = check(1000)
	require.NoError(t, err)
	require.False(t, checked)
}
