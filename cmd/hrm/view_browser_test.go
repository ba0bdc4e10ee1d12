//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// browserVariable is "required" where a missing browser must fail the tests.
const browserVariable = "DEEPLOOP_BROWSER"

// screenshotsVariable is a folder for pictures of the pages.
const screenshotsVariable = "DEEPLOOP_SCREENSHOTS"

// browser is a headless Chromium with one tab.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// startBrowser starts a browser that talks to nobody but this machine.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv(browserVariable) == "required" {
			t.Fatalf("no Chromium on the path, and $%s is required", browserVariable)
		}
		t.Skip("no Chromium on the path (Debian's package chromium), so the page is not tried in a browser")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 9*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return b
}

// watch collects complaints of pages and addresses that they load until the
// returned function is called.
func (b *browser) watch() (complaints, loaded func() []string) {
	collect := func() (func(string), func() []string) {
		texts := make(chan []string, 1)
		texts <- nil
		return func(s string) { texts <- append(<-texts, s) }, func() []string { all := <-texts; texts <- all; return all }
	}
	complain, complaints := collect()
	load, loaded := collect()
	messages, requests := chromedp.Console(b.ctx), chromedp.Events(b.ctx, network.RequestWillBeSent)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			complain(m.String())
		}
	}()
	go func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			load(e.Request.URL)
		}
	}()
	return complaints, loaded
}

// visit opens an address and waits until what it shows is there.
func (b *browser) visit(url, ready string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(url)), url)
	b.until(fmt.Sprintf("!!document.querySelector(%q)", ready))
}

// until waits for an expression to be true.
func (b *browser) until(js string) {
	b.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](js))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText.slice(0, 1500)"))
			b.t.Fatalf("never true: %s (%v)\n%s", js, err, text)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// eval is the value of an expression, or of what it promises.
func eval[T any](b *browser, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, js)
	return v
}

// press types keys. A printing key is one event, as from a keyboard, so that a
// page that takes it keeps its letter from being written.
func (b *browser) press(keys string) {
	b.t.Helper()
	for _, r := range keys {
		key := string(r)
		if r < ' ' || r > '~' {
			require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(key)))
			continue
		}
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			p := input.DispatchKeyEventParams{Type: kind, Key: key}
			if kind == input.DispatchKeyEventTypeKeyDown {
				p.Text = key
			}
			_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, p)
			require.NoError(b.t, err)
		}
	}
}

func (b *browser) scheme(value string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
	require.NoError(b.t, err)
}

// picture keeps a picture of the page where somebody asks for it.
func (b *browser) picture(name string) {
	dir := os.Getenv(screenshotsVariable)
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// contrast is the lowest contrast of text colours on the grounds they stand
// on, as WCAG defines it.
const contrast = `(() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const probe = document.body.appendChild(document.createElement('span'));
    probe.style.color = style.getPropertyValue(name);
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    probe.remove();
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let lowest = 99;
  for (const ground of ['--paper', '--card', '--hover']) for (const ink of ['--ink', '--soft', '--accent', '--good', '--bad', '--part']) {
    const [a, b] = [light(ground), light(ink)].sort((x, y) => y - x);
    lowest = Math.min(lowest, (a + 0.05) / (b + 0.05));
  }
  return lowest;
})()`

// nameless are controls that say nothing to who cannot see them.
const nameless = `[...document.querySelectorAll('a[href], button, input, select, svg[role=img], summary')].filter((e) =>
  !(e.getAttribute('aria-label') || e.closest('label')?.textContent.trim() || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 100))`

// The page in a real browser: every part, keys, filters, links into it, a run
// that trains, a phone, light and dark, and a report.
func TestViewInABrowser(t *testing.T) {
	b := startBrowser(t)
	shownRun(t)
	url := serveView(t, "--threads 1")
	complaints, loaded := b.watch()
	items := getJSON[struct{ Items []shownItem }](t, url+"/api/items").Items
	id := map[string]string{}
	for _, it := range items {
		id[it.Kind] = it.ID
	}
	answers := "#/answers/" + id["answers"]
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900)))
	b.scheme("light")

	b.visit(url+"/", ".cards .title")
	require.Equal(t, 3, eval[int](b, `document.querySelectorAll('.cards li').length`))
	b.press("?")
	b.until(`document.getElementById('keys').open`)
	b.press(kb.Escape)
	b.until(`!document.getElementById('keys').open`)

	// Answers: the list, its keys, filters and addresses.
	b.visit(url+"/"+answers, "article h2")
	require.Equal(t, 16, eval[int](b, `document.querySelectorAll('.rows li').length`))
	first := eval[string](b, `document.querySelector('article h2').textContent`)
	b.press("j")
	b.until(`location.hash.endsWith('/1') && document.querySelector('article h2').textContent !== ` + fmt.Sprintf("%q", first))
	b.press("k")
	b.until(fmt.Sprintf(`location.hash.endsWith('/0') && document.querySelector('article h2').textContent === %q`, first))
	b.checkDifference(url, id["answers"], 0)
	b.picture("answers")
	b.press("d")
	b.until(`location.hash.includes('diff=0') && !document.querySelector('.wrong')`)
	b.press("/")
	b.until(`document.activeElement.type === 'search'`)
	b.press("either")
	b.until(`document.querySelectorAll('.rows li').length === 1 && location.hash.includes('q=either')`)
	b.press(kb.Escape)
	b.until(`document.activeElement.type !== 'search'`)
	unsolved := eval[int](b, fmt.Sprintf(`fetch('/api/answers/%s?page=0').then((r) => r.json()).then((l) => l.rows.filter((r) => !r.tests.every((t) => t.rank > 0 && t.rank <= 2)).length)`, id["answers"]))
	b.visit(url+"/"+answers+"?show=unsolved", ".rows")
	b.until(fmt.Sprintf(`document.querySelectorAll('.rows li').length === %d && document.querySelector('.chips [aria-pressed=true]').textContent === 'unsolved'`, unsolved))
	b.visit(url+"/"+answers+"/3?show=unsolved&size=5", "article h2")
	b.until(`document.querySelector('article h2').textContent === 'rotate-half-wide' && document.querySelectorAll('.rows li').length < 16`)
	b.visit(url+"/#/answers/none", ".error")

	// Tasks, examples, and their keys.
	b.visit(url+"/#/dataset/"+id["dataset"]+"/train/2", "article h2")
	require.Contains(t, eval[string](b, `document.querySelector('.rows li').textContent`), "2 copies", "the task itself is none")
	b.press(kb.ArrowRight)
	b.until(`location.hash.includes('copy=1') && document.querySelector('.controls span').textContent.includes('Copy 1 of 2')`)
	b.picture("dataset")

	// Curves, while the run goes on.
	b.visit(url+"/#/curves/"+id["run"], ".chart .line")
	b.until(`document.querySelector('.run-status b').textContent === 'step 20'`)
	metrics, err := os.OpenFile("runs/demo/metrics.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer metrics.Close()
	_, err = metrics.WriteString(`{"step":21,"event":"train","lm_loss":1.5}` + "\n" + `{"step":22,"ev`)
	require.NoError(t, err)
	b.until(`document.querySelector('.run-status b').textContent === 'step 21' && document.querySelector('.chart .values').textContent.includes('21')`)
	b.press("l")
	b.until(`location.hash.includes('log=1') && !!document.querySelector('.chart .line')`)
	b.picture("curves")

	// A model at work.
	b.visit(url+"/#/model/"+id["run"]+"/test/0", ".attention .heat")
	require.Equal(t, 4, eval[int](b, `document.querySelectorAll('.segments li').length`))
	b.press(kb.ArrowLeft)
	b.until(`location.hash.includes('seg=3') && document.querySelector('#answer figcaption').textContent.includes('segment 3')`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(".attention .cells button:nth-child(4)"))))
	b.until(`location.hash.includes('cell=0%2C1') && document.querySelector('.attention [role=status]').textContent.startsWith('Row 1, column 2')`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(".attention svg.grid"))))
	b.until(`!location.hash.includes('cell=0%2C1')`)
	b.picture("model")

	// Light and dark, desk and phone: nothing sticks out, everything has a name.
	pages := map[string]struct{ hash, ready string }{
		"home":    {"#/", ".cards"},
		"list":    {answers, ".rows a"},
		"answer":  {answers + "/1", ".answers"},
		"example": {"#/dataset/" + id["dataset"] + "/train/2", "article .pairs"},
		"curve":   {"#/curves/" + id["run"], ".chart"},
		"inside":  {"#/model/" + id["run"] + "/test/0", ".attention svg.grid"},
	}
	grounds := map[string]string{}
	for _, scheme := range []string{"dark", "light"} { // dark at the desk, light in the hand
		b.scheme(scheme)
		if scheme == "light" {
			require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile)))
		}
		for name, page := range pages {
			b.visit(url+"/"+page.hash, page.ready)
			require.LessOrEqual(t, eval[float64](b, `document.documentElement.scrollWidth - innerWidth`), 0.0, "%s sticks out", name)
			require.Empty(t, eval[[]string](b, nameless), name)
			b.picture(name + "-" + scheme)
		}
		grounds[scheme] = eval[string](b, `getComputedStyle(document.body).backgroundColor`)
		require.GreaterOrEqual(t, eval[float64](b, contrast), 4.5, "%s: text must be readable", scheme)
	}
	require.NotEqual(t, grounds["light"], grounds["dark"])
	b.visit(url+"/"+answers, ".rows a")
	b.until(`getComputedStyle(document.querySelector('.detail')).display === 'none'`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(".rows a"))))
	b.until(`getComputedStyle(document.querySelector('.list')).display === 'none' && !!document.querySelector('article')`)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(".to-list"))))
	b.until(`getComputedStyle(document.querySelector('.list')).display !== 'none'`)

	for _, address := range loaded() {
		require.True(t, strings.HasPrefix(address, url+"/") || strings.HasPrefix(address, "data:") || address == "about:blank", address)
	}
	require.Empty(t, complaints())
}

// A report opens from its file, shows the same, and asks for nothing.
func TestReportInABrowser(t *testing.T) {
	b := startBrowser(t)
	shownRun(t)
	hrmProgram.OK(t, "report --run runs/demo --out report.html --examples 2 --threads 1")
	dir, err := os.Getwd()
	require.NoError(t, err)
	file := "file://" + filepath.Join(dir, "report.html")
	complaints, loaded := b.watch()
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900)))
	b.visit(file, ".about")
	links := eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll('nav a')].map((a) => [a.textContent, a.getAttribute('href')]))`)
	require.Len(t, links, 4)
	b.visit(file+links["Answers"], ".answers")
	require.Equal(t, 16, eval[int](b, `document.querySelectorAll('.rows li').length`))
	b.press("j")
	b.until(`location.hash.endsWith('/1') && !!document.querySelector('article .answers')`)
	b.visit(file+links["Curves"], ".chart .line")
	b.visit(file+links["Datasets"], "article .pairs")
	b.visit(file+links["Model"], ".attention .heat")
	require.Equal(t, 4, eval[int](b, `document.querySelectorAll('.segments li').length`))
	b.visit(file+links["Model"]+"/7", ".error")
	require.Contains(t, eval[string](b, `document.querySelector('.error').textContent`), "left out of the report")
	for _, address := range loaded() {
		require.True(t, address == "about:blank" || strings.HasPrefix(address, file) || strings.HasPrefix(address, "data:"), address)
	}
	require.Empty(t, complaints())
}

// checkDifference compares the marks of wrong cells with the grids themselves.
func (b *browser) checkDifference(url, id string, task int) {
	b.t.Helper()
	v := getJSON[struct {
		TestViews []struct {
			Output  string
			Answers []struct{ Grid string }
		} `json:"test_views"`
	}](b.t, fmt.Sprintf("%s/api/answers/%s/%d", url, id, task))
	var want []string
	for _, test := range v.TestViews {
		truth := strings.Split(test.Output, "/")
		for _, a := range test.Answers[:min(6, len(test.Answers))] {
			wrong := 0
			for r, row := range strings.Split(a.Grid, "/") {
				for c := range row {
					if r >= len(truth) || c >= len(truth[r]) || truth[r][c] != row[c] {
						wrong++
					}
				}
			}
			want = append(want, fmt.Sprint(wrong))
		}
	}
	// Each wrong cell is one square of the path of marks; none without a path.
	got := eval[[]string](b, `[...document.querySelectorAll('.answer svg.grid')].map((s) => String((s.querySelector('.wrong')?.getAttribute('d').match(/M/g) || []).length))`)
	require.Equal(b.t, want, got)
}
