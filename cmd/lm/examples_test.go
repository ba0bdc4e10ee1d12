package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
	"deeploop/internal/goldentest"
	"deeploop/lm/corpus"
)

// smallExample makes lines of examples short: few steps of a tiny model, little
// measuring.
func smallExample(args []string) []string {
	if len(args) == 0 {
		return args
	}
	switch args[0] {
	case "train":
		args = append(args, "--steps=4", "--eval-steps=2", "--checkpoint-interval=1", "--eval-tokens=600", "--hidden-size=32", "--num-heads=2", "--layers=2", "--batch-size=1", "--grad-accum=1")
	case "bench":
		args = append(args, "--seconds=0.01", "--hidden-size=32", "--num-heads=2", "--layers=1", "--loops=2", "--context=16", "--batch-size=1")
	case "eval":
		args = append(args, "--tokens=600")
	case "generate":
		args = append(args, "--tokens=5")
	case "diagnose":
		args = append(args, "--batches=1", "--batch=1")
	case "suite":
		if args[len(args)-1] != "convert" && !strings.HasPrefix(strings.Join(args, " "), "suite convert") {
			args = append(args, "--limit=2")
		}
	case "serve":
		args = append(args, "--addr=127.0.0.1:0") // any port that is free
	}
	return args
}

// The commands of getting started work one after the other, as they are written,
// from a clean checkout.
func TestGettingStartedWorks(t *testing.T) {
	root := goldentest.Root()
	page, err := os.ReadFile(filepath.Join(root, "docs", "getting-started.md"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.CopyFS("docs", os.DirFS(filepath.Join(root, "docs"))))
	commandtest.Examples{Root: newRootCmd(nil)}.Page(t, string(page))
}

// Every example in the help works as it is written.
func TestExamplesWork(t *testing.T) {
	root := newRootCmd(nil)
	var s server
	commandtest.Examples{
		Root: root,
		Order: []string{
			"", "prepare", "show", "train", "eval", "suite convert", "suite", "generate", "serve", "export", "import", "diagnose kappa", "plot", "inspect", "bench",
		},
		Before: map[string]func(t *testing.T){
			"prepare": writeTexts,
			"show":    func(t *testing.T) { copyFile(t, firstShard(t, "data/books"), "fineweb_val_000000.bin") },
			"train": func(t *testing.T) { // the newest dataset: GPT-2's vocabulary takes a plain kernel minutes
				now := time.Now()
				require.NoError(t, os.Chtimes("data/shakespeare/"+corpus.ManifestName, now, now))
			},
			"suite convert": func(t *testing.T) {
				commandtest.Write(t, "hellaswag_val.jsonl", `{"activity_label":"Rowing","ctx_a":"Two people push a boat.","ctx_b":"they","endings":["row away.","eat it."],"label":"0"}`+"\n")
				commandtest.Write(t, "valid.jsonl", `{"goal":"Warm a room","sol1":"Light the stove.","sol2":"Open the roof."}`+"\n")
				commandtest.Write(t, "valid-labels.lst", "0\n")
			},
			"suite": func(t *testing.T) {
				trainSmall(t, "data/books", "runs/b") // the newest, not of characters
				for _, name := range []string{"arc_easy", "train"} {
					commandtest.Write(t, name+".jsonl", `{"context": "Snow is", "choices": ["white", "loud"], "gold": 0}`+"\n")
				}
			},
			"serve":  func(t *testing.T) { commandtest.Write(t, "story.txt", strings.Repeat("Once upon a time ", 20)) },
			"export": func(t *testing.T) { commandtest.CopyCheckpoint(t, "runs/a", "step-00000500") },
			"import": func(t *testing.T) {
				prefixTensors(t, "model.", "exported/model.safetensors", "weights.safetensors")
				copyFile(t, "exported/config.json", "config.json")
			},
			"diagnose kappa": func(t *testing.T) { trainSmall(t, "data/books", "runs/untied", "--layers=4", "--loops=1") },
			"plot": func(t *testing.T) {
				trainSmall(t, "data/books", "runs/base", "--placement=prenorm")
				trainSmall(t, "data/books", "runs/deeploop")
			},
			"sweep": func(t *testing.T) {

				commandtest.Write(t, "experiment.yaml", "train: --preset testing --data sample\nmetrics: [loss]\nsettings: [{name: a}]\n")
			},
			"inspect": func(t *testing.T) { trainSmall(t, "data/books", "runs/demo") },
		},
		Line: s.line,
	}.Run(t)
	s.stop(t)
}

// trainSmall trains a tiny model for a moment.
func trainSmall(t *testing.T, data, run string, more ...string) {
	t.Helper()
	ok(t, "train --preset testing --steps 4 --eval-steps 2 --eval-tokens 600 --batch-size 1 --context 256 --data "+data+" --run "+run, more...)
}

// writeTexts makes the texts that the examples of lm prepare read.
func writeTexts(t *testing.T) {
	var text strings.Builder
	for i := range 400 {
		text.WriteString(strings.Repeat("Once upon a time there was a "+string(rune('a'+i%26)), 2) + "\n")
	}
	commandtest.Write(t, "shakespeare.txt", text.String())
	commandtest.Write(t, "books/one.txt", text.String())
	commandtest.Write(t, "books/two.txt", text.String()+"x")
	commandtest.Write(t, "story.txt", text.String())
	var lines strings.Builder
	for i := range 300 {
		lines.WriteString(`{"text": "Document ` + strings.Repeat(string(rune('a'+i%26)), 10*(1+i)) + `"}` + "\n")
	}
	commandtest.Write(t, "fineweb/part.jsonl", lines.String())
	commandtest.WriteZstd(t, "notes.jsonl.zst", lines.String())
}

func firstShard(t *testing.T, data string) string {
	t.Helper()
	shards, err := filepath.Glob(filepath.Join(data, "*val*.bin"))
	require.NoError(t, err)
	require.NotEmpty(t, shards)
	return shards[0]
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, raw, 0o644))
}

// prefixTensors copies a safetensors file with longer names of tensors.
func prefixTensors(t *testing.T, prefix, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	require.NoError(t, err)
	size := binary.LittleEndian.Uint64(raw)
	var header, renamed map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw[8:8+size], &header))
	renamed = map[string]json.RawMessage{}
	for name, about := range header {
		if name != "__metadata__" {
			name = prefix + name
		}
		renamed[name] = about
	}
	longer, err := json.Marshal(renamed)
	require.NoError(t, err)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(longer)))
	require.NoError(t, os.WriteFile(to, append(append(out, longer...), raw[8+size:]...), 0o644))
}

// server is an lm serve of the examples, with which others talk.
type server struct {
	cmd     *exec.Cmd
	address string
}

// line starts servers in the background, and sends what talks to the default
// address to them.
func (s *server) line(t *testing.T, line string) bool {
	if strings.HasPrefix(line, "lm serve") {
		s.stop(t)
		s.cmd = exec.Command("sh", "-ec", "exec "+line)
		errs, err := s.cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, s.cmd.Start())
		said := ""
		for in := bufio.NewScanner(errs); in.Scan(); {
			said += in.Text() + "\n"
			if _, address, found := strings.Cut(in.Text(), "listening on http://"); found {
				s.address = address
				go func() { // so that it can go on writing
					for in.Scan() {
					}
				}()
				return true
			}
		}
		t.Fatalf("%s does not listen:\n%s", line, said)
	}
	const standard = "127.0.0.1:8080"
	if !strings.Contains(line, standard) {
		return false
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Logf("not run without curl: %s", line)
		return true
	}
	out, err := exec.Command("sh", "-ec", strings.ReplaceAll(line, standard, s.address)).Output()
	require.NoError(t, err, line)
	require.Contains(t, string(out), `"text_completion"`)
	return true
}

func (s *server) stop(t *testing.T) {
	if s.cmd == nil {
		return
	}
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		t.Fatal("the server does not end when interrupted")
	}
	s.cmd = nil
}
