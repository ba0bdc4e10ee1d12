package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"deeploop/internal/cli"
)

// Sweep is a file of experiments: settings, each trained with several seeds.
type Sweep struct {
	// Name is that of the folder below runs/ (default: the file's).
	Name string `yaml:"name"`
	// About says what is compared, Prepare how its data is made.
	About   string `yaml:"about"`
	Prepare string `yaml:"prepare"`
	// Train are the flags of all runs, as one line; run folder and seed are
	// added.
	Train string `yaml:"train"`
	// Seeds are those of every setting that has none of its own.
	Seeds []int `yaml:"seeds"`
	// Minutes is what a run is expected to take.
	Minutes float64 `yaml:"minutes"`
	// Parallel runs train at a time, with Threads each (0: as Train says).
	Parallel int `yaml:"parallel"`
	Threads  int `yaml:"threads"`
	// Then are command lines of the program after a training, {run} its folder.
	// What the last one prints, a JSON document, is kept.
	Then []string `yaml:"then"`
	// Metrics are the columns of the table: of the last evaluation while
	// training, or with "then." before a dotted path into that document.
	Metrics  []string  `yaml:"metrics"`
	Settings []Setting `yaml:"settings"`
	// Results is text for people; nothing reads it.
	Results string `yaml:"results"`
}

// Setting is one line of the table.
type Setting struct {
	Name  string `yaml:"name"`
	Train string `yaml:"train"` // flags beside those of all
	Seeds []int  `yaml:"seeds"`
}

// sweepRun is one training.
type sweepRun struct {
	setting string
	seed    int
	dir     string   // run folder
	args    []string // of the training
}

var sweepName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// readSweep reads and checks a file.
func readSweep(path string) (*Sweep, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usagef("read sweep: %w", err)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, cli.Usagef("read sweep %s: the file is empty; experiments/ has some to start from", path)
	}
	s := &Sweep{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Parallel: 1, Seeds: []int{0}}
	if err := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict()).Decode(s); err != nil {
		return nil, cli.Usagef("read sweep %s: %w", path, err)
	}
	bad := func(format string, args ...any) error {
		return cli.Usagef("read sweep %s: %s", path, fmt.Sprintf(format, args...))
	}
	switch {
	case !sweepName.MatchString(s.Name):
		return nil, bad("name is %q, expected letters, digits, dots, _ and -", s.Name)
	case len(s.Settings) == 0:
		return nil, bad("there are no settings; list them, each with a name and train: its flags")
	case len(s.Metrics) == 0:
		return nil, bad("metrics is empty; name at least one, as in metrics: [loss]")
	case s.Parallel < 1 || s.Threads < 0 || s.Minutes < 0:
		return nil, bad("parallel is %d, threads %d, minutes %v; expected at least 1, 0 and 0", s.Parallel, s.Threads, s.Minutes)
	}
	seen := map[string]bool{}
	for _, x := range s.Settings {
		switch {
		case !sweepName.MatchString(x.Name):
			return nil, bad("a setting's name is %q, expected letters, digits, dots, _ and -", x.Name)
		case seen[x.Name]:
			return nil, bad("two settings are called %s", x.Name)
		}
		seen[x.Name] = true
		seeds := slices.Sorted(slices.Values(s.seedsOf(x)))
		if len(seeds) == 0 {
			return nil, bad("there are no seeds; list them, as in seeds: [0, 1, 2], or leave seeds out")
		}
		for i := 1; i < len(seeds); i++ {
			if seeds[i] == seeds[i-1] {
				return nil, bad("seed %d of setting %s is there twice", seeds[i], x.Name)
			}
		}
		for _, flag := range strings.Fields(s.Train + " " + x.Train) {
			for _, own := range []string{"--run", "--seed", "--resume", "--force", "--minutes", "--stop-after"} {
				if name, _, _ := strings.Cut(flag, "="); name == own {
					return nil, bad("%s is given by the sweep itself; remove it from train of %s", own, x.Name)
				}
			}
		}
	}
	for _, m := range s.Metrics {
		if strings.HasPrefix(m, thenPrefix) && len(s.Then) == 0 {
			return nil, bad("metric %s needs a command below then that prints JSON", m)
		}
	}
	return s, nil
}

// runs are all trainings, seed by seed, so that a sweep that is stopped has all
// settings with the first seeds.
func (s *Sweep) runs() (all []sweepRun) {
	most := 0
	for _, x := range s.Settings {
		most = max(most, len(s.seedsOf(x)))
	}
	for i := range most {
		for _, x := range s.Settings {
			seeds := s.seedsOf(x)
			if i >= len(seeds) {
				continue
			}
			r := sweepRun{setting: x.Name, seed: seeds[i], dir: filepath.Join(RunsFolder, s.Name, fmt.Sprintf("%s-seed%d", x.Name, seeds[i]))}
			r.args = append(r.args, "train")
			r.args = append(r.args, strings.Fields(s.Train+" "+x.Train)...)
			if s.Threads > 0 {
				r.args = append(r.args, fmt.Sprintf("--threads=%d", s.Threads))
			}
			r.args = append(r.args, fmt.Sprintf("--seed=%d", r.seed), "--run="+filepath.ToSlash(r.dir))
			all = append(all, r)
		}
	}
	return all
}

func (s *Sweep) seedsOf(x Setting) []int {
	if len(x.Seeds) > 0 {
		return x.Seeds
	}
	return s.Seeds
}

// expected is how long so many runs take, by what one takes.
func (s *Sweep) expected(runs int, each time.Duration) time.Duration {
	return time.Duration(float64(each) * float64(runs) / float64(s.Parallel))
}
