package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deeploop/hrm"
	"deeploop/hrm/solve"
	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/train"
)

// solvePreset is the configuration hrm solve starts from when told nothing.
const solvePreset = "solve"

// solvePresets are the names that --preset takes.
func solvePresets() []string { return append([]string{solvePreset}, hrm.Presets()...) }

// solveOptions are the flags of hrm solve.
type solveOptions struct {
	config *cli.Settings[hrm.TrainConfig]
	solve  solve.Settings // but for its Train
	flags  *pflag.FlagSet

	preset, tasks       string
	minutes             float64
	checkpoint, weights string
	parallel            int
	out, work, color    string
	again, force        bool
	json                bool
	pictureFile         string // beside out

	replaces, replacesPicture bool // out and the picture are there already
}

func newSolveCmd(s *cli.Streams) *cobra.Command {
	o := solveOptions{config: newTrainSettings(), solve: solve.Defaults()}
	cmd := &cobra.Command{
		Use:   "solve TASK...",
		Short: "Answer tasks that nothing was trained on",
		Long: `Answer ARC tasks: train a small model on the demonstrations of each task and
their augmentations, or fit a trained one to them (--checkpoint), and let
augmented copies of every test input vote for two answers.

TASK is a task file, a folder (all tasks in it and in its folders), a combined
file (all its tasks), FOLDER:ID for one task of it, or the name of a sample
task. Every task is answered --minutes after it was begun; --steps counts
training steps instead, and then the same seed, kernel and thread count give the
same answers. Test outputs in a file are used for the score at the end and for
nothing else.

Several models (--models) are trained one after the other and all vote. Copies
with shuffled colours (--colors) vote where the model could learn them: where a
rule names colours it cannot.

With --checkpoint only the embeddings of the new task are fitted; --all-weights
fits everything, at the rate it was trained with unless --lr says another. The
checkpoint decides about model and canvas, tasks larger than that are left out
with a warning before any is begun, and it is one model unless --models says
more, as all would start from the same weights.

What has been answered is kept below --work: the same command goes on where it
was stopped. Ctrl-C answers with what was learned so far.`,
		Example: `  hrm solve my-task.json
  hrm solve halo mirror-sideways --minutes 1
  hrm solve arc-agi-1/evaluation --minutes 2 --out submission.json
  hrm solve my-task.json --checkpoint runs/arc1 --all-weights`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return solveRun(c.Context(), s, &o, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *solveOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	o.flags = f
	f.Float64Var(&o.minutes, "minutes", 5, "time for each task; with --steps only where given")
	f.StringVar(&o.out, "out", "", "write the answers as a submission to this `FILE.json`, and a picture to FILE.png")
	f.StringVar(&o.checkpoint, "checkpoint", "", "start from this run, its best checkpoint, or this checkpoint `DIR|FILE`")
	f.StringVar(&o.weights, "weights", "", "of the checkpoint: ema or raw (default ema where the run kept it)")
	f.BoolVar(&o.solve.AllWeights, "all-weights", false, "with --checkpoint: fit all weights, not only the task's embeddings")
	f.StringVar(&o.solve.Init, "init", o.solve.Init, "with --checkpoint: new task embeddings start at the mean of the trained ones, or at zeros")
	f.StringVar(&o.tasks, "tasks", "", "`FILE` with the ids of the tasks to answer, one a line (default all)")
	f.IntVar(&o.parallel, "parallel", 0, "tasks at a time, which share the threads; 0 is one for every "+fmt.Sprint(threadsPerTask)+" threads")
	f.IntVar(&o.solve.Models, "models", o.solve.Models, "train at most so many models one after the other, each in its part of the time, and let all vote; one that is not through with learning goes on in the next part; with --checkpoint one unless given")
	f.IntVar(&o.solve.Votes, "votes", o.solve.Votes, "augmented copies of each test input that vote")
	f.StringSliceVar(&o.solve.Colors, "colors", o.solve.Colors, "colours of the task, each way with embeddings of its own: keep, free (shuffle those that some demonstration lacks), any (shuffle all)")
	f.BoolVar(&o.solve.Turns, "turns", o.solve.Turns, "turn and flip the task, each way with embeddings of its own")
	f.IntVar(&o.solve.Copies, "copies", o.solve.Copies, "fixed random copies beside, as hrm build-data makes them, each with an embedding of its own")
	f.IntVar(&o.solve.Margin, "margin", o.solve.Margin, "rows and columns of the canvas beyond the largest grid")
	f.BoolVar(&o.solve.SizeRule, "size-rule", o.solve.SizeRule, "drop answers of another size than the demonstrations imply")
	f.StringVar(&o.work, "work", "", "`DIR` that keeps finished tasks (default one below "+solveFolder+" for these settings)")
	f.BoolVar(&o.again, "again", false, "answer tasks that are kept there too")
	f.BoolVar(&o.force, "force", false, "with --out: replace also files that are no submission and no picture")
	f.StringVar(&o.color, "color", "auto", "colour in the terminal: auto, always or never")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.StringVar(&o.preset, "preset", solvePreset, "configuration to start from: "+strings.Join(solvePresets(), ", "))
	o.config.AddFlags(f)
	for _, flag := range unusedFlags {
		cobra.CheckErr(f.MarkHidden(flag))
	}
}

// unusedFlags are keys of a training that mean nothing here.
var unusedFlags = []string{
	"data", "epochs", "eval-interval", "checkpoint-every-eval", "eval-save-outputs", "eval-steps", "eval-augmentations",
	"checkpoint-interval", "keep",
}

// threadsPerTask is how many threads a task gets where there are more tasks
// than that needs: a guess, as only one and two threads have been measured.
const threadsPerTask = 4

func solveRun(ctx context.Context, s *cli.Streams, o *solveOptions, args []string) error {
	text, err := showText(s.Out, o.color)
	if err != nil {
		return err
	}
	settings, ck, err := o.settings()
	if err != nil {
		return err
	}
	if ck != nil {
		defer ck.Reader.Close()
	}
	if err := o.checkOut(); err != nil {
		return err
	}
	tasks, err := findProblems(s, args, o.tasks)
	if err != nil {
		return err
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(sig os.Signal) {
		s.Infof("%v: answering with what was learned so far; once more ends at once", sig)
	})
	defer stop()
	compute := command.Compute{Kernel: settings.Train.Kernel, Precision: settings.Train.Precision, Threads: settings.Train.Threads}
	team, err := openTeam(s, compute, o.flags.Changed("kernel"), o.parallel, len(tasks))
	if err != nil {
		return err
	}
	defer team.close()
	settings.Train.Precision = team.choices[0].Precision.String()
	work, err := openWork(o.work, settings, ck)
	if err != nil {
		return err
	}
	session := &solving{
		settings: settings, checkpoint: ck, tasks: tasks, team: team, work: work, again: o.again,
		progress: newSolveProgress(s, len(tasks)),
	}
	if !o.json {
		session.show = func(t *solved) error { return showAnswers(s.Out, t, text) }
	}
	if err := session.check(s); err != nil {
		return err
	}
	session.announce(s.Lines())
	session.progress.p.Doing("preparing " + tasksText(len(tasks)))
	runErr := session.run(ctx)
	if err := o.write(s, session); err != nil {
		return err
	}
	return runErr
}

// settings resolves preset, checkpoint, file and flags.
func (o *solveOptions) settings() (solve.Settings, *solve.Checkpoint, error) {
	r := o.solve
	for _, flag := range unusedFlags {
		if o.flags.Changed(flag) {
			return r, nil, cli.Usagef("--%s means nothing to hrm solve, which makes its own data and checkpoints none", flag)
		}
	}
	if o.preset != solvePreset {
		preset, err := hrm.Preset(o.preset)
		if err != nil {
			return r, nil, cli.Usagef("check configuration: preset is %q, expected one of %s", o.preset, strings.Join(solvePresets(), ", "))
		}
		preset.Steps = 0
		r.Train = preset
	}
	var ck *solve.Checkpoint
	if o.checkpoint == "" {
		for _, flag := range []string{"weights", "all-weights", "init"} {
			if o.flags.Changed(flag) {
				return r, nil, cli.Usagef("--%s needs --checkpoint", flag)
			}
		}
	} else {
		if o.flags.Changed("preset") {
			return r, nil, cli.Usagef("--preset and --checkpoint: choose one, the checkpoint has its own configuration")
		}
		found, err := checkpoint.OpenFound(o.checkpoint, checkpoint.BestSaved)
		if err != nil {
			return r, nil, command.Instead(err, "find checkpoint", o.checkpoint, command.ReasonerRun)
		}
		if ck, err = solve.NewCheckpoint(found, o.weights); err != nil {
			found.Close()
			return r, nil, err
		}
		r.Train.Arch, r.Train.LR = ck.Config.Arch, ck.Config.LR
		if !o.flags.Changed("models") {
			r.Models = 1 // others would begin at the same weights
		}
	}
	fail := func(err error) (solve.Settings, *solve.Checkpoint, error) {
		if ck != nil {
			ck.Reader.Close()
		}
		return r, nil, err
	}
	resolved, err := o.config.Resolve(r.Train)
	if err != nil {
		return fail(err)
	}
	if ck != nil {
		arch, err := checkpointArch(o.config, resolved, ck.Config.Arch)
		if err != nil {
			return fail(err)
		}
		resolved.Value.Arch = arch
	}
	r.Train = resolved.Value
	r.FixedBatch = resolved.Chosen("global_batch_size")
	if !(o.minutes > 0 && o.minutes <= 1e6) {
		return fail(cli.Usagef("--minutes is %v, expected a number of minutes above 0", o.minutes))
	}
	if r.Train.Steps == 0 || o.flags.Changed("minutes") {
		r.Limit = time.Duration(o.minutes * float64(time.Minute))
	}
	if err := r.Check(); err != nil {
		return fail(resolved.Explain(err))
	}
	return r, ck, nil
}

// depthKeys are what may differ from a checkpoint's architecture.
var depthKeys = []string{"arch.H_cycles", "arch.L_cycles", "arch.halt_max_steps", "arch.halt_exploration_prob"}

// checkpointArch is the checkpoint's architecture at the depth that was chosen.
func checkpointArch(keys *cli.Settings[hrm.TrainConfig], r *cli.Resolved[hrm.TrainConfig], arch hrm.Config) (hrm.Config, error) {
	var depth hrm.Depth
	for _, f := range keys.Fields() {
		if !strings.HasPrefix(f.Key, "arch.") || !r.Chosen(f.Key) {
			continue
		}
		if !slices.Contains(depthKeys, f.Key) {
			return arch, cli.Usagef("--%s cannot be chosen with --checkpoint: the checkpoint's model is what it is", f.Flag)
		}
	}
	a := r.Value.Arch
	if r.Chosen("arch.H_cycles") {
		depth.HCycles = a.HCycles
	}
	if r.Chosen("arch.L_cycles") {
		depth.LCycles = a.LCycles
	}
	if r.Chosen("arch.halt_max_steps") {
		depth.HaltMaxSteps = a.HaltMaxSteps
	}
	arch = arch.AtDepth(depth)
	arch.HaltExplorationProb = a.HaltExplorationProb
	return arch, nil
}

// threads is how many compute threads a request comes to.
func threads(asked int) int {
	if asked == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return asked
}
