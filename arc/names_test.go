package arc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names that are not UTF-8 or steer a terminal are refused, escaped in the
// message.
func TestNamesThatCannotBeIDs(t *testing.T) {
	for name, want := range map[string]string{
		"a\xffb":        `a\xffb.json": has a name that is not valid UTF-8`,
		"a\x1b[31mb":    `a\x1b[31mb.json": has the control character U+001B in its name`,
		"a\nb":          `a\nb.json": has the control character U+000A`,
		"a\u202eb":      `a\u202eb.json": has the control character U+202E`,
		"x\u0085\u2028": `has the control character U+0085`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(aTask("4")), 0o644); err != nil {
			t.Logf("no file can be called %q here: %v", name, err)
			continue
		}
		for _, path := range []string{".", name + ".json"} {
			msg := refused(t, dir, path)
			require.Contains(t, msg, want)
			require.NotContains(t, msg, name)
		}
	}
	dir := tree(t, map[string]string{"all.json": `{"good": ` + aTask("1") + `, "bad\u001b[2J": ` + aTask("2") + `}`,
		"beside/x_challenges.json": `{"good": ` + aTask("1") + `}`, "fine/Größe 1,5 ¼ 网格.json": aTask("3")})
	msg := refused(t, dir, "all.json")
	require.Contains(t, msg, `task "bad\x1b[2J": has the control character U+001B in its name`)
	require.Equal(t, "Größe 1,5 ¼ 网格", load(t, dir, "fine").Tasks[0].ID)

	// What is only named in a warning is escaped there.
	if err := os.WriteFile(filepath.Join(dir, "beside", "n\x1b[31m.json"), []byte("{}"), 0o644); err == nil {
		require.Contains(t, load(t, dir, "beside").Warnings[0], `n\x1b[31m.json`)
	}
	require.Error(t, CheckID(""))
}

// Files that are too large are refused by their size, unread.
func TestLargeFilesAreRefused(t *testing.T) {
	dir := tree(t, map[string]string{"a.json": "", "b_challenges.json": "", "c/d_challenges.json": `{"x": ` + aTask("1") + `}`, "c/d_solutions.json": ""})
	for name, want := range map[string]string{
		"a.json":            "a.json: has 21474836480 bytes, expected at most 67108864 (64 MiB)",
		"b_challenges.json": "has 21474836480 bytes, expected at most 1073741824 (1024 MiB)",
	} {
		require.NoError(t, os.Truncate(filepath.Join(dir, name), 20<<30)) // sparse
		require.Contains(t, refused(t, dir, name), want)
	}
	require.NoError(t, os.Truncate(filepath.Join(dir, "c", "d_solutions.json"), 20<<30))
	require.Contains(t, refused(t, dir, "c"), "d_solutions.json: has 21474836480 bytes")
}

// A folder linked into itself is no folder of tasks.
func TestFoldersLinkedIntoThemselves(t *testing.T) {
	dir := tree(t, map[string]string{"flat/a.json": aTask("1"), "flat/b.json": aTask("2"),
		"two/x/a.json": aTask("1"), "two/y/b.json": aTask("2"), "only/": "", "deep/evaluation/sub/a.json": aTask("3")})
	link := func(target, name string) bool {
		err := os.Symlink(filepath.FromSlash(target), filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Log("links cannot be made here:", err)
		}
		return err == nil
	}
	if !link(".", "flat/self") {
		return
	}
	link("..", "flat/parent")
	c := load(t, dir, "flat")
	require.Len(t, c.Tasks, 2)
	require.True(t, c.Tasks[0].HoldOut, "the folder is still flat")
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], "not read, links to a folder that it lies in: ")

	// In a circle of two.
	link("../y", "two/x/other")
	link("../x", "two/y/other")
	require.Len(t, load(t, dir, "two").Tasks, 2)

	link("..", "deep/evaluation/sub/up")
	require.Len(t, load(t, dir, "deep").Tasks, 1)

	link("../only", "only/self")
	require.Contains(t, refused(t, dir, "only"), "no task files")
}
