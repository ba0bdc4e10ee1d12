package view

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/arc"
	"deeploop/augment"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func serverOf(t *testing.T, o Options, found ...Item) *Server {
	t.Helper()
	o.Now = clock
	s := New(found, o)
	t.Cleanup(s.Close)
	return s
}

// asked is an answer to a GET.
func asked(s http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:8077"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// got decodes an answer that must be there.
func got[T any](t *testing.T, s *Server, path string) (v T) {
	t.Helper()
	w := asked(s, path)
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v), path)
	return v
}

// refusedWith requires an error with parts in its sentence.
func refusedWith(t *testing.T, s *Server, path string, code int, parts ...string) {
	t.Helper()
	w := asked(s, path)
	require.Equal(t, code, w.Code, "%s: %s", path, w.Body)
	var e struct{ Error string }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
	for _, p := range parts {
		require.Contains(t, e.Error, p)
	}
}

// sampleData builds a small dataset of the sample tasks.
func sampleData(t *testing.T, numAug int, compress string) (dir string, c *arc.Corpus) {
	t.Helper()
	c, err := arc.Samples()
	require.NoError(t, err)
	dir = filepath.Join(t.TempDir(), "set")
	_, err = augment.Build(t.Context(), c, dir, augment.BuildOptions{
		Settings: augment.Settings{NumAug: numAug, Seed: 42, MaxGrid: 10, DestOrder: augment.TrainFirst, Compress: compress}})
	require.NoError(t, err)
	return dir, c
}

func TestPageIsServedSafely(t *testing.T) {
	s := serverOf(t, Options{Host: "box"}, Item{Kind: KindTasks})
	w := asked(s, "/")
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "<title>deeploop</title>")
	policy := w.Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Equal(t, 304, asked(s, "/", "If-None-Match", w.Header().Get("ETag")).Code)
	for name, kind := range map[string]string{"main.js": "text/javascript", "view.css": "text/css", "icon.svg": "image/svg"} {
		w := asked(s, "/"+name)
		require.Equal(t, 200, w.Code)
		require.Contains(t, w.Header().Get("Content-Type"), kind)
	}
	for _, path := range []string{"/nothing", "/main.js/", "/assets/main.js", "/server.go", "/..%2fserver.go", "/%00", "/a%2f..%2fmain.js"} {
		require.Equal(t, 404, asked(s, path).Code, path)
	}
	for _, path := range []string{"/api/", "/api/none", "/api/tasks", "/api/tasks/samples/x", "/api/tasks/samples/-1", "/api/tasks/samples/01",
		"/api/tasks/samples/999999", "/api/tasks/samples?page=7", "/api/tasks/other", "/api/run/samples", "/api/dataset/samples/train", "/api/answers/samples", "/api/model/samples"} {
		refusedWith(t, s, path, 404)
	}
	refusedWith(t, s, "/api/tasks/samples?page=x", 400, `page is "x"`)
	r := httptest.NewRequest(http.MethodPost, "/api/items", strings.NewReader("{}"))
	r.Host = "localhost"
	post := httptest.NewRecorder()
	s.ServeHTTP(post, r)
	require.Equal(t, 405, post.Code)
}

// A name that somebody made to lead to this machine gets nothing, and neither
// does a page of another site.
func TestForeignRequestsAreRefused(t *testing.T) {
	s := serverOf(t, Options{Host: "box"}, Item{Kind: KindTasks})
	for _, host := range []string{"127.0.0.1:8077", "127.0.0.1", "[::1]:8077", "localhost:9", "LOCALHOST", "192.168.1.2:80", "box:1", "Box"} {
		require.Equal(t, 200, asked(s, "/api/items", "Host", host).Code, host)
	}
	for _, host := range []string{"evil.example", "evil.example:8077", "localhost.evil.example", "127.0.0.1.evil.example", "boxer", "", "box.example:8077"} {
		require.Equal(t, 421, asked(s, "/api/items", "Host", host).Code, host)
		require.Equal(t, 421, asked(s, "/", "Host", host).Code, host)
	}
	for site, code := range map[string]int{"same-origin": 200, "none": 200, "cross-site": 403, "same-site": 403} {
		require.Equal(t, code, asked(s, "/api/items", "Sec-Fetch-Site", site).Code, site)
	}
	require.Equal(t, 200, asked(s, "/", "Sec-Fetch-Site", "cross-site").Code, "a link from elsewhere may lead to the page")
}

func TestRunServesAndEnds(t *testing.T) {
	s := serverOf(t, Options{}, Item{Kind: KindTasks})
	s.Now = time.Now // deadlines are real here
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/api/items")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	cancel()
	require.NoError(t, <-ended)
}

func TestGuess(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	metrics := write("runs/a/metrics.jsonl", "")
	write("runs/b/checkpoints/index.json", "{}")
	write("runs/notes/readme.txt", "")
	write("set/train/dataset.json", "{}")
	task := write("tasks/t.json", "{}")
	votes := write("p.safetensors.zst", "")
	other := write("x.txt", "")
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for path, want := range map[string][]Item{
		at("runs/a"): {{Kind: KindRun, Path: at("runs/a")}},
		metrics:      {{Kind: KindRun, Path: at("runs/a")}},
		at("runs"):   {{Kind: KindRun, Path: at("runs/a")}, {Kind: KindRun, Path: at("runs/b")}},
		at("set"):    {{Kind: KindDataset, Path: at("set")}},
		dir:          {{Kind: KindDataset, Path: at("set")}},
		at("tasks"):  {{Kind: KindTasks, Path: at("tasks")}},
		task:         {{Kind: KindTasks, Path: task}},
		votes:        {{Kind: KindAnswers, Path: votes}},
	} {
		found, err := Guess(path)
		require.NoError(t, err)
		require.Equal(t, want, found, path)
	}
	for path, part := range map[string]string{other: "of no known kind", at("none"): "does not exist"} {
		_, err := Guess(path)
		var bad *Error
		require.ErrorAs(t, err, &bad)
		require.True(t, bad.BadInput())
		require.ErrorContains(t, err, part)
	}
}

func TestItemsHaveNamesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	var found []Item
	for _, parent := range []string{"x", "y"} {
		path := filepath.Join(dir, parent, "ä same")
		require.NoError(t, os.MkdirAll(path, 0o755))
		found = append(found, Item{Kind: KindRun, Path: path}, Item{Kind: KindRun, Path: path + "/"})
	}
	s := serverOf(t, Options{}, found...)
	var ids []string
	for _, it := range got[struct{ Items []itemView }](t, s, "/api/items").Items {
		ids = append(ids, it.ID)
		require.Equal(t, "ä same", it.Name)
	}
	require.Equal(t, []string{"same", "same-2"}, ids, "each path once, names told apart")
	for folder, name := range map[string]string{
		"step-00000919-ema-aug-all-data-ae6538a2":         "step 919 ema, all copies",
		"step-00000060-ema-aug-1-data-ae6538a2":           "step 60 ema, 1 copy",
		"step-00000010-raw-aug-3-data-ae6538a2-segments8": "step 10 raw, 3 copies segments8",
		"step-00000010-raw-aug-3-names-ae6538a2-bf16-amx": "step 10 raw, 3 copies names ae6538a2 bf16 amx",
		"mine": "mine",
	} {
		require.Equal(t, name, evaluationName(folder))
	}
}

func TestTasks(t *testing.T) {
	s := serverOf(t, Options{}, Item{Kind: KindTasks})
	c, err := arc.Samples()
	require.NoError(t, err)
	list := got[page[taskRow]](t, s, "/api/tasks/samples?page=0")
	require.Equal(t, len(c.Tasks), list.Total)
	require.Len(t, list.Rows, len(c.Tasks))
	for i := range c.Tasks {
		v := got[taskView](t, s, fmt.Sprintf("/api/tasks/samples/%d", i))
		require.Equal(t, c.Tasks[i].ID, v.ID)
		require.Equal(t, list.Rows[i], v.taskRow)
		require.Len(t, v.TrainPairs, len(c.Tasks[i].Train))
		for k, p := range c.Tasks[i].Test {
			require.Equal(t, pairView{gridText(p.Input), gridText(p.Output)}, v.TestPairs[k])
		}
	}
	require.Equal(t, "012/345", gridText(arc.Grid{Rows: 2, Cols: 3, Cells: []uint8{0, 1, 2, 3, 4, 5}}))
	require.Empty(t, gridText(arc.Grid{}))
	require.Equal(t, ".|09?", canvasText([]uint8{0, 1, 2, 11, 12}))
}

// The examples of every copy, with the augmentation undone, are the task's.
func TestDatasetShowsEveryExample(t *testing.T) {
	for _, compress := range []string{"", augment.Zstd} {
		dir, c := sampleData(t, 3, compress)
		s := serverOf(t, Options{}, Item{Kind: KindDataset, Path: dir})
		for _, split := range []string{"train", "test"} {
			list := got[page[groupRow]](t, s, "/api/dataset/set/"+split+"?page=0")
			for g, row := range list.Rows {
				tasks := c.Find(row.ID)
				require.Len(t, tasks, 1)
				pairs := tasks[0].Test
				if split == "train" {
					pairs = tasks[0].Train
					if !tasks[0].HoldOut {
						pairs = append(slices.Clone(pairs), tasks[0].Test...)
					}
				}
				require.Equal(t, len(pairs), row.Examples)
				for k := range row.Copies {
					p := got[puzzleView](t, s, fmt.Sprintf("/api/dataset/set/%s/%d/%d", split, g, k))
					require.Equal(t, row.ID, p.ID)
					require.Len(t, p.Examples, len(pairs))
					colors, err := augment.ParseColors(p.Colors)
					require.NoError(t, err)
					a := augment.Augmentation{Dihedral: p.Dihedral, Colors: colors}
					if k == 0 {
						require.Equal(t, augment.Original(), a)
					}
					for i, e := range p.Examples {
						require.Equal(t, gridText(pairs[i].Input), gridText(a.Undo(gridIn(tokensOf(t, e.Input)))))
						require.Equal(t, gridText(pairs[i].Output), gridText(a.Undo(gridIn(tokensOf(t, e.Label)))))
					}
				}
			}
		}
		refusedWith(t, s, "/api/dataset/set/other", 404, "train or test")
		refusedWith(t, s, "/api/dataset/set/train/0/4", 404, "there are 4")
	}
}

func tokensOf(t *testing.T, canvas string) []uint8 {
	t.Helper()
	tokens := make([]uint8, len(canvas))
	for i, c := range []byte(canvas) {
		switch {
		case c == '.':
		case c == '|':
			tokens[i] = augment.EndToken
		case c >= '0' && c <= '9':
			tokens[i] = c - '0' + augment.FirstColor
		default:
			t.Fatalf("canvas has %q", c)
		}
	}
	return tokens
}

func TestBrokenDatasetIsASentence(t *testing.T) {
	dir, _ := sampleData(t, 0, "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "identifiers.json"), []byte(`["a", 3`), 0o644))
	s := serverOf(t, Options{}, Item{Kind: KindDataset, Path: dir})
	refusedWith(t, s, "/api/dataset/set/train", 422, "identifiers.json")
}

// Whoever finds the queue full is told so at once.
func TestWaitingIsBounded(t *testing.T) {
	s := serverOf(t, Options{})
	release := make(chan struct{})
	started := make(chan struct{})
	go s.alone(context.Background(), func() error { close(started); <-release; return nil })
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, waiting)
	for range waiting {
		go func() { waited <- s.alone(ctx, func() error { return nil }) }()
	}
	require.Eventually(t, func() bool { return len(s.places) == cap(s.places) }, 5*time.Second, time.Millisecond)
	require.ErrorIs(t, s.alone(t.Context(), func() error { return nil }), errBusy)
	cancel()
	for range waiting {
		require.ErrorIs(t, <-waited, context.Canceled)
	}
	close(release)
}

func TestPanicIsAnAnswer(t *testing.T) {
	s := serverOf(t, Options{})
	w := httptest.NewRecorder()
	s.answer(func(*http.Request) (any, error) { panic("boom") })(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, 500, w.Code)
	require.NotContains(t, w.Body.String(), "boom")
}
