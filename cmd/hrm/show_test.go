package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// show runs hrm show and returns its exit code and both streams.
func show(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(append([]string{"show"}, args...), &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestShowListsTheSamples(t *testing.T) {
	code, out, errs := show()
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "evaluation sample tasks:\n")
	require.Contains(t, out, "training sample tasks:\n")
	require.Contains(t, out, "  mirror-sideways\n")
}

func TestShowDrawsTasks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"k":1,"train":[{"input":[[1,2]],"output":[[3]]}],"test":[{"input":[[4]]}]}`), 0o644))
	other := filepath.Join(dir, "other_challenges.json")
	require.NoError(t, os.WriteFile(other, []byte(`{"a:b":{"train":[{"input":[[1]],"output":[[3]]}],"test":[{"input":[[4]]}]},"c":{"train":[{"input":[[7]],"output":[[8]]}],"test":[{"input":[[9]]}]}}`), 0o644))

	code, out, errs := show(file)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "mine\ntrain[0] 1x2 > 1x1\n1 2  >  3\n")
	require.Contains(t, out, "test[0] 1x1 > ?\n4  >  ?\n")
	require.Contains(t, errs, `warning: ignored the key "k"`)

	code, out, errs = show(other+":c", "halo")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "c (other)\n")
	require.NotContains(t, out, "a:b")
	require.Contains(t, out, "halo (training)\n")
	require.NotContains(t, out, "\x1b", "no colour without a terminal")

	code, out, _ = show(other, "--color", "always")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "\x1b[48;2;0;116;217m")

	code, out, _ = show("--color=never", dir)
	require.Equal(t, cli.ExitOK, code, "a folder with both kinds of file")
	require.Contains(t, out, "a:b (other)\n")
}

func TestShowNotesOddPairsT24(t *testing.T) {
	file := filepath.Join(t.TempDir(), "odd.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"train":[{"input":[[1]],"output":[[1]]},{"input":[[2]],"output":[[2,2]]},{"input":[[3]],"output":[[3]]}],"test":[{"input":[[4]]}]}`), 0o644))
	code, out, errs := show(file)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, errs, "note: odd train[1]: output is 1x2, input 1x1")
	require.Contains(t, out, "2  >  2 2")
}

func TestShowWritesPictures(t *testing.T) {
	dir := t.TempDir()
	pngFile, svgFile := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.SVG")
	code, out, errs := show("halo", "either", "--png", pngFile, "--svg", svgFile)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "wrote "+pngFile+" (2 tasks)\nwrote "+svgFile+" (2 tasks)\n", out)
	f, err := os.Open(pngFile)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	require.Greater(t, img.Bounds().Dx(), 300)
	text, err := os.ReadFile(svgFile)
	require.NoError(t, err)
	require.Contains(t, string(text), "halo (training)")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary file stays")
}

func TestShowRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"train":[{"input":[[1,2],[3]],"output":[[3]]}],"test":[]}`), 0o644))
	good := filepath.Join(dir, "good.json")
	require.NoError(t, os.WriteFile(good, []byte(`{"train":[{"input":[[1]],"output":[[3]]}],"test":[{"input":[[4]]}]}`), 0o644))
	picture := filepath.Join(dir, "x.png")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"mirror-sidways"}, "did you mean mirror-sideways?"},
		{[]string{"zzzzzzzz"}, "`hrm show` without arguments lists the samples"},
		{[]string{good + ":goods"}, "did you mean good?"},
		{[]string{good + ":zzzzzzz"}, "expected one of its 1 tasks, such as good"},
		{[]string{filepath.Join(dir, "none.json")}, "no such file or folder"},
		{[]string{filepath.Join(dir, "none") + ":x"}, "does not exist, expected a folder or file with task x"},
		{[]string{bad, "--png", picture}, "train[0].input row 1 has 1 cell, expected 2"},
		{[]string{"halo", "--png", good}, "the name does not end in .png"},
		{[]string{"halo", "--svg", picture}, "the name does not end in .svg"},
		{[]string{"--png", picture}, "no TASK given"},
		{[]string{"halo", "--png", filepath.Join(dir, "no", "x.png")}, "write picture"},
		{[]string{"halo", "--color", "blue"}, "expected auto, always or never"},
		{[]string{""}, "not in the sample tasks"},
	} {
		code, out, errs := show(tc.args...)
		require.Equal(t, cli.ExitUsage, code, tc.args)
		require.Empty(t, out)
		require.Contains(t, errs, tc.want)
		require.NoFileExists(t, picture)
	}
}
