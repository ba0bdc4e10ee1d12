package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"deeploop/arc"
	"deeploop/internal/cli"
)

// showOptions are the flags of hrm show.
type showOptions struct {
	png, svg string
	color    string
}

func newShowCmd(s *cli.Streams) *cobra.Command {
	var opt showOptions
	cmd := &cobra.Command{
		Use:   "show [TASK]...",
		Short: "Draw tasks in the terminal or as a picture",
		Long: `Draw ARC tasks in the terminal, or write them as one picture.

TASK is a task file, a folder of tasks or a combined file (all its tasks),
FOLDER:ID for one task of it, or the name of a sample task. Without TASK the
sample tasks are listed. Without colour (NO_COLOR, or when the output is not a
terminal) cells are digits.`,
		Example: `  hrm show mirror-sideways halo
  hrm show my-task.json
  hrm show arc-agi-1:007bbfb7 --png task.png`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return showRun(s, opt, args) },
	}
	cmd.Flags().StringVar(&opt.png, "png", "", "write a PNG picture to this `FILE` instead")
	cmd.Flags().StringVar(&opt.svg, "svg", "", "write an SVG picture to this `FILE` instead")
	cmd.Flags().StringVar(&opt.color, "color", "auto", "colour in the terminal: auto, always or never")
	return cmd
}

func showRun(s *cli.Streams, opt showOptions, args []string) error {
	text, err := showText(s.Out, opt.color)
	if err != nil {
		return err
	}
	for _, f := range []struct{ file, ext string }{{opt.png, ".png"}, {opt.svg, ".svg"}} {
		if f.file != "" && !strings.EqualFold(filepath.Ext(f.file), f.ext) {
			return cli.Usagef("write picture %s: the name does not end in %s, expected one that does", f.file, f.ext)
		}
	}
	if len(args) == 0 {
		if opt.png != "" || opt.svg != "" {
			return cli.Usagef("draw a picture: no TASK given, expected a file, a folder or a sample task")
		}
		return listSamples(s.Out)
	}
	var tasks []*arc.Task
	for _, arg := range args {
		found, warnings, err := findTasks(arg)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			fmt.Fprintln(s.Err, "warning:", w)
		}
		tasks = append(tasks, found...)
	}
	for _, t := range tasks {
		if hint, odd := t.OddPair(); odd {
			fmt.Fprintf(s.Err, "note: %s %s\n", t.ID, hint)
		}
	}
	if opt.png == "" && opt.svg == "" {
		for _, t := range tasks {
			if err := arc.WriteText(s.Out, t, text); err != nil {
				return err
			}
		}
		return nil
	}
	if opt.png != "" {
		if err := writePicture(s, opt.png, tasks, arc.WritePNG); err != nil {
			return err
		}
	}
	if opt.svg != "" {
		return writePicture(s, opt.svg, tasks, arc.WriteSVG)
	}
	return nil
}

// showText decides about colour and width.
func showText(out io.Writer, color string) (arc.TextOptions, error) {
	var opt arc.TextOptions
	tty := cli.IsTerminal(out)
	switch color {
	case "auto":
		opt.Color = tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		opt.Color = true
	case "never":
	default:
		return opt, cli.Usagef("read --color: found %q, expected auto, always or never", color)
	}
	if f, ok := out.(*os.File); ok && tty {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			opt.Width = width
		}
	}
	return opt, nil
}

// findTasks resolves one TASK argument: a path, FOLDER:ID or a sample's name.
func findTasks(arg string) (tasks []*arc.Task, warnings []string, err error) {
	if exists(arg) {
		c, err := arc.Load(arg)
		if err != nil {
			return nil, nil, err
		}
		for i := range c.Tasks {
			tasks = append(tasks, &c.Tasks[i])
		}
		return tasks, c.Warnings, nil
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && exists(arg[:i]) {
		c, err := arc.Load(arg[:i])
		if err != nil {
			return nil, nil, err
		}
		if tasks = c.Find(arg[i+1:]); len(tasks) == 0 {
			return nil, nil, unknownTask(c, arg[i+1:], arg[:i], fmt.Sprintf("expected one of its %d tasks, such as %s", len(c.Tasks), c.Tasks[0].ID))
		}
		return tasks, nil, nil
	}
	if strings.ContainsAny(arg, `/\`) || strings.EqualFold(filepath.Ext(arg), ".json") {
		path, id := arg, ""
		if i := strings.LastIndexByte(arg, ':'); i > 1 {
			path, id = arg[:i], arg[i+1:]
		}
		if id != "" {
			return nil, nil, cli.Usagef("show %s: %s does not exist, expected a folder or file with task %s", arg, path, id)
		}
		return nil, nil, cli.Usagef("show %s: no such file or folder, expected a task file, a folder of tasks, FOLDER:ID or a sample task's name", arg)
	}
	c, err := arc.Samples()
	if err != nil {
		return nil, nil, err
	}
	if tasks = c.Find(arg); len(tasks) == 0 {
		return nil, nil, unknownTask(c, arg, "the sample tasks, nor a file or folder", "`hrm show` without arguments lists the samples")
	}
	return tasks, nil, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, ":")
}

// unknownTask lists near names, or gives the hint if there are none.
func unknownTask(c *arc.Corpus, id, where, hint string) error {
	if near := c.Near(id); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return cli.Usagef("show %s: not in %s; %s", id, where, hint)
}

func listSamples(out io.Writer) error {
	c, err := arc.Samples()
	if err != nil {
		return err
	}
	for _, g := range c.Groups {
		fmt.Fprintf(out, "%s sample tasks:\n", g.Name)
		for _, t := range c.Tasks[g.Start:g.End] {
			fmt.Fprintln(out, "  "+t.ID)
		}
	}
	return nil
}

// writePicture writes beside the target and renames, so that no half picture
// is left.
func writePicture(s *cli.Streams, file string, tasks []*arc.Task, write func(io.Writer, ...*arc.Task) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".show-*")
	if err != nil {
		return cli.Usagef("write picture %s: %w", file, err)
	}
	defer os.Remove(tmp.Name())
	if err := write(tmp, tasks...); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return fmt.Errorf("write picture %s: %w", file, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write picture %s: %w", file, err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("write picture %s: %w", file, err)
	}
	n := "tasks"
	if len(tasks) == 1 {
		n = "task"
	}
	fmt.Fprintf(s.Out, "wrote %s (%d %s)\n", file, len(tasks), n)
	return nil
}
