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

	"deeploop/arc"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/files"
)

// showOptions are the flags of hrm show.
type showOptions struct {
	png, svg string
	color    string
	force    bool
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
	cmd.Flags().BoolVar(&opt.force, "force", false, "replace a FILE that is no such picture too")
	cmd.Flags().StringVar(&opt.color, "color", "auto", "colour in the terminal: auto, always or never")
	return cmd
}

func showRun(s *cli.Streams, opt showOptions, args []string) error {
	text, err := showText(s.Out, opt.color)
	if err != nil {
		return err
	}
	pictures := []picture{{opt.png, ".png", files.PNG, arc.WritePNG, false}, {opt.svg, ".svg", files.SVG, arc.WriteSVG, false}}
	for i := range pictures {
		if err := pictures[i].check(opt.force); err != nil {
			return err
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
		found, warnings, err := findTasks("show", arg)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			s.Warnf("%s", w)
		}
		tasks = append(tasks, found...)
	}
	for _, t := range tasks {
		if hint, odd := t.OddPair(); odd {
			s.Infof("note: %s %s", t.ID, hint)
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
	for _, p := range pictures {
		if p.file == "" {
			continue
		}
		if err := p.write(s, tasks); err != nil {
			return err
		}
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
	if tty {
		opt.Width = cli.Width(out)
	}
	return opt, nil
}

// findTasks resolves one TASK argument: a path, FOLDER:ID or a sample's name.
// verb begins complaints.
func findTasks(verb, arg string) (tasks []*arc.Task, warnings []string, err error) {
	if exists(arg) {
		c, err := arc.Load(arg)
		if err != nil {
			return nil, nil, command.Instead(err, verb, arg, command.ARCTasks)
		}
		for i := range c.Tasks {
			tasks = append(tasks, &c.Tasks[i])
		}
		return tasks, c.Warnings, nil
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && exists(arg[:i]) {
		c, err := arc.LoadSome(arg[:i])
		if err != nil {
			return nil, nil, command.Instead(err, verb, arg[:i], command.ARCTasks)
		}
		if tasks = c.Find(arg[i+1:]); len(tasks) == 0 {
			hint := fmt.Sprintf("expected one of its %d tasks, such as %s", len(c.Tasks), c.Tasks[0].ID)
			for _, w := range c.Warnings {
				if strings.Contains(w, arg[i+1:]) { // in a file that was left out
					hint = w
				}
			}
			return nil, nil, unknownTask(verb, c, arg[i+1:], arg[:i], hint)
		}
		return tasks, nil, nil
	}
	if strings.ContainsAny(arg, `/\`) || strings.EqualFold(filepath.Ext(arg), ".json") {
		path, id := arg, ""
		if i := strings.LastIndexByte(arg, ':'); i > 1 {
			path, id = arg[:i], arg[i+1:]
		}
		if id != "" {
			return nil, nil, cli.Usagef("%s %s: %s does not exist, expected a folder or file with task %s", verb, arg, path, id)
		}
		return nil, nil, cli.Usagef("%s %s: no such file or folder, expected a task file, a folder of tasks, FOLDER:ID or a sample task's name", verb, arg)
	}
	c, err := arc.Samples()
	if err != nil {
		return nil, nil, err
	}
	if tasks = c.Find(arg); len(tasks) == 0 {
		return nil, nil, unknownTask(verb, c, arg, "the sample tasks, nor a file or folder", "`hrm show` without arguments lists the samples")
	}
	return tasks, nil, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, ":")
}

// unknownTask lists near names, or gives the hint if there are none.
func unknownTask(verb string, c *arc.Corpus, id, where, hint string) error {
	if near := c.Near(id); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return cli.Usagef("%s %s: not in %s; %s", verb, id, where, hint)
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

// picture is a file that --png or --svg asks for; file is "" where none is.
type picture struct {
	file, ext string
	kind      files.Kind
	draw      func(io.Writer, ...*arc.Task) error
	replaces  bool
}

// check refuses a name that cannot be written.
func (p *picture) check(force bool) (err error) {
	if p.file == "" {
		return nil
	}
	if !strings.EqualFold(filepath.Ext(p.file), p.ext) {
		return cli.Usagef("write picture %s: the name does not end in %s, expected one that does", p.file, p.ext)
	}
	if p.replaces, err = files.Check(p.file, p.kind, force, false); err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// write leaves no half picture.
func (p *picture) write(s *cli.Streams, tasks []*arc.Task) error {
	if err := files.Write(p.file, func(w io.Writer) error { return p.draw(w, tasks...) }); err != nil {
		return fmt.Errorf("write picture %s: %w", p.file, err)
	}
	did := "wrote"
	if p.replaces {
		did = "replaced"
	}
	fmt.Fprintf(s.Out, "%s %s (%d %s)\n", did, p.file, len(tasks), plural(len(tasks), "task"))
	return nil
}
