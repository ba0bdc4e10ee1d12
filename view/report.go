package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"deeploop/internal/wording"
)

// ReportOptions say how much of everything a report has.
type ReportOptions struct {
	Tasks    int      // tasks of each list in full
	Only     []string // these tasks, by name, and no others; nil: solved ones first
	Copies   int      // copies of each task of a dataset
	Examples int      // examples that the model runs
	// Doing, if set, is told what goes on.
	Doing func(what string)
}

// attentionBytes bounds the attention in a report.
const attentionBytes = 6 << 20

// Report writes the page with all it shows inside, as one file that opens
// offline: lists whole, tasks, copies and examples up to the options. What was
// cut is said on its first page, and returned.
func (s *Server) Report(ctx context.Context, w io.Writer, o ReportOptions) (cuts []string, err error) {
	r := &report{server: s, ctx: ctx, o: o, answers: map[string]json.RawMessage{}, tasksOf: map[string]bool{}}
	if err := r.gather(); err != nil {
		return nil, err
	}
	notes := map[string]any{
		"made": fmt.Sprintf("Made by hrm report, version %s, on %s.", s.Version, s.Now().UTC().Format("2006-01-02 15:04 UTC")),
		"cuts": append([]string{}, r.cuts...),
	}
	data, err := json.Marshal(map[string]any{"report": notes, "answers": r.answers}) // escapes <, > and &
	if err != nil {
		return nil, err
	}
	page, err := standalone(data)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(page)
	return r.cuts, err
}

// report gathers answers by address.
type report struct {
	server  *Server
	ctx     context.Context
	o       ReportOptions
	answers map[string]json.RawMessage
	cuts    []string
	tasksOf map[string]bool // names of all tasks in lists
}

// memory is a response in memory.
type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) WriteHeader(status int)      { m.status = status }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

// get asks the server as the page would, keeps the answer and decodes it.
func (r *report) get(path string, v any) error {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	m := &memory{header: http.Header{}, status: http.StatusOK}
	r.server.mux.ServeHTTP(m, req)
	if m.status != http.StatusOK {
		var e struct{ Error string }
		if json.Unmarshal(m.body.Bytes(), &e) != nil || e.Error == "" {
			e.Error = fmt.Sprintf("status %d", m.status)
		}
		return &httpError{m.status, e.Error}
	}
	r.answers[path] = bytes.TrimSpace(m.body.Bytes())
	if v == nil {
		return nil
	}
	return json.Unmarshal(m.body.Bytes(), v)
}

func (r *report) cut(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.cuts, text) {
		r.cuts = append(r.cuts, text)
	}
}

// gather asks for everything. What cannot be read is left out and said, unless
// that is all there is.
func (r *report) gather() error {
	var list struct{ Items []itemView }
	if err := r.get("/api/items", &list); err != nil {
		return err
	}
	var failed []error
	for _, it := range list.Items {
		r.doing("gathering " + it.Path)
		var err error
		switch it.Kind {
		case KindTasks:
			err = r.tasks(it)
		case KindDataset:
			err = r.dataset(it)
		case KindAnswers:
			err = r.predictions(it)
		case KindRun:
			err = r.run(it, list.Items)
		}
		if stopped := r.ctx.Err(); stopped != nil {
			return stopped
		}
		if err != nil {
			if text := err.Error(); strings.HasPrefix(text, it.Path+":") { // it says already what it is about
				failed = append(failed, err)
			} else {
				failed = append(failed, fmt.Errorf("report on %s: %w", it.Path, err))
			}
			r.cut("%s is left out: %v", it.Path, err)
		}
	}
	if len(failed) > 0 && len(failed) == len(list.Items) {
		return failed[0]
	}
	if len(failed) > 0 {
		return nil // what cannot be read may have the tasks that were asked for
	}
	return r.allThere()
}

// allThere is an error where a task that was asked for is in no list.
func (r *report) allThere() error {
	for _, name := range r.o.Only {
		if r.tasksOf[name] {
			continue
		}
		if near := wording.Nearest(name, slices.Sorted(maps.Keys(r.tasksOf))); near != "" {
			return notFound("no task is called %q; did you mean %s?", name, near)
		}
		return notFound("no task is called %q in what is shown", name)
	}
	return nil
}

func (r *report) doing(what string) {
	if r.o.Doing != nil {
		r.o.Doing(what)
	}
}

// entry is a row of a list of any kind.
type entry struct {
	ID    string
	Row   int
	Tests []testRank
}

// list gets a list, whole.
func (r *report) list(path string) ([]entry, error) {
	var rows []entry
	for n, pages := 0, 1; n < pages; n++ {
		var p struct {
			Pages int
			Rows  []entry
		}
		if err := r.get(fmt.Sprintf("%s?page=%d", path, n), &p); err != nil {
			return nil, err
		}
		pages = p.Pages
		rows = append(rows, p.Rows...)
	}
	return rows, nil
}

// chosen are the rows to show in full: the named ones, or the first, those with
// right answers before the others.
func (r *report) chosen(rows []entry, of string) []int {
	for _, row := range rows {
		r.tasksOf[row.ID] = true
	}
	var at []int
	if r.o.Only != nil {
		for i, row := range rows {
			if slices.Contains(r.o.Only, row.ID) {
				at = append(at, i)
			}
		}
		if len(at) < len(rows) {
			r.cut("%s: %d of %s are shown in full, those asked for", of, len(at), wording.Count(len(rows), "task"))
		}
		return at
	}
	for i := range rows {
		at = append(at, i)
	}
	rank := func(i int) int { // the worst of its tests, unsolved ones last
		worst := 0
		for _, t := range rows[i].Tests {
			if t.Rank == 0 {
				return 1 << 30
			}
			worst = max(worst, t.Rank)
		}
		return worst
	}
	slices.SortStableFunc(at, func(a, b int) int { return rank(a) - rank(b) })
	if len(at) > r.o.Tasks {
		at = at[:r.o.Tasks]
		r.cut("%s: %d of %s are shown in full", of, len(at), wording.Count(len(rows), "task"))
	}
	return at
}

func (r *report) tasks(it itemView) error {
	path := "/api/tasks/" + it.ID
	rows, err := r.list(path)
	if err != nil {
		return err
	}
	for _, i := range r.chosen(rows, it.Name) {
		if err := r.get(fmt.Sprintf("%s/%d", path, i), nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) dataset(it itemView) error {
	for _, split := range []string{"train", "test"} {
		path := "/api/dataset/" + it.ID + "/" + split
		rows, err := r.list(path)
		if err != nil {
			return err
		}
		for _, i := range r.chosen(rows, it.Name+" "+split) {
			for k, copies := 0, 1; k < copies; k++ {
				var p struct{ Copies int }
				if err := r.get(fmt.Sprintf("%s/%d/%d", path, i, k), &p); err != nil {
					return err
				}
				if copies = min(p.Copies, r.o.Copies+1); copies < p.Copies {
					r.cut("%s: %d augmented copies of each task at most", it.Name, r.o.Copies)
				}
			}
		}
	}
	return nil
}

func (r *report) predictions(it itemView) error {
	path := "/api/answers/" + it.ID
	rows, err := r.list(path)
	if err != nil {
		return err
	}
	if r.server.Curve != nil {
		if err := r.get(path+"/curve", nil); err != nil {
			return err
		}
	}
	for _, i := range r.chosen(rows, it.Name) {
		if err := r.get(fmt.Sprintf("%s/%d", path, i), nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) run(it itemView, items []itemView) error {
	path := "/api/run/" + it.ID
	var about struct{ Metrics map[string][]string }
	if err := r.get(path, &about); err != nil {
		return err
	}
	for _, names := range about.Metrics {
		for _, name := range names {
			// As the page escapes it.
			q := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
			if err := r.get(path+"/curves?metric="+q, nil); err != nil {
				return err
			}
		}
	}
	if !it.Model || r.server.Model == nil || r.o.Examples == 0 || it.Data == "" {
		return nil
	}
	return r.model(it, items)
}

// model runs examples: the first tests that are shown in full.
func (r *report) model(it itemView, items []itemView) error {
	r.doing("running the model of " + it.Path)
	path := "/api/model/" + it.ID
	var about struct {
		Calls    []string
		Blocks   map[string]int
		Segments int
		Data     string
		Splits   map[string]splitSize
	}
	if err := r.get(path, &about); err != nil {
		return err
	}
	split := "test"
	if about.Splits[split].Examples == 0 {
		split = "train"
	}
	rows, err := r.list("/api/dataset/" + about.Data + "/" + split)
	if err != nil {
		return err
	}
	chosen := r.chosen(rows, it.Name)
	if len(chosen) > r.o.Examples {
		chosen = chosen[:r.o.Examples]
	}
	r.cut("%s at work: %s, and attention at the last segment, in the last block of the last call of each module, as the mean over heads", it.Name, wording.Count(len(chosen), "example"))
	size := 0
	for _, i := range chosen {
		example := fmt.Sprintf("%s/%s/%d", path, split, rows[i].Row)
		if err := r.get(example, nil); err != nil {
			return err
		}
		for call, module := range about.Calls {
			if slices.Contains(about.Calls[call+1:], module) {
				continue
			}
			at := fmt.Sprintf("%s/attention?segment=%d&call=%d&block=%d&head=-1", example, about.Segments-1, call, about.Blocks[module]-1)
			if size > attentionBytes {
				r.cut("%s at work: attention of the first examples only", it.Name)
				continue
			}
			if err := r.get(at, nil); err != nil {
				return err
			}
			size += len(r.answers[at])
		}
	}
	return nil
}

// modules are the page's, each behind those it imports.
var modules = []string{
	"dom.js", "data.js", "grid.js", "chart.js", "list.js", "page_home.js", "page_tasks.js", "page_dataset.js", "page_answers.js", "page_curves.js", "page_model.js", "main.js",
}

// bundle makes one module of all: they import nothing but names from each
// other, in lines of their own, and no two define the same name.
func bundle() ([]byte, error) {
	var b bytes.Buffer
	for _, name := range modules {
		raw, err := asset(name)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(raw) {
			if bytes.HasPrefix(line, []byte("import ")) {
				continue
			}
			b.Write(bytes.TrimPrefix(line, []byte("export ")))
		}
	}
	return b.Bytes(), nil
}

// standalone is index.html with style, script and data inside, which may use
// nothing else.
func standalone(data []byte) ([]byte, error) {
	page, err := asset("index.html")
	if err != nil {
		return nil, err
	}
	style, err := asset("view.css")
	if err != nil {
		return nil, err
	}
	script, err := bundle()
	if err != nil {
		return nil, err
	}
	icon, err := asset("icon.svg")
	if err != nil {
		return nil, err
	}
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style))
	meta := `<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(policy) + `">`
	for _, change := range []struct{ old, new string }{
		{`<meta charset="utf-8">`, `<meta charset="utf-8">` + "\n" + meta},
		{`href="icon.svg"`, `href="data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString(icon) + `"`},
		{`<link rel="stylesheet" href="view.css">`, "<style>" + string(style) + "</style>"},
		{`<script type="module" src="main.js"></script>`, ""},
		{`</body>`, `<script type="application/json" id="data">` + string(data) + "</script>\n<script type=\"module\">" + string(script) + "</script>\n</body>"},
	} {
		if bytes.Count(page, []byte(change.old)) != 1 {
			return nil, fmt.Errorf("make a page of one file: index.html does not have %q once", change.old)
		}
		page = bytes.Replace(page, []byte(change.old), []byte(change.new), 1)
	}
	return page, nil
}
