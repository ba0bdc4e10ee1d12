package cli

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

type testLoss struct {
	Kind string `yaml:"loss_type"`
}

type testArch struct {
	Hidden  int      `yaml:"hidden_size" help:"width"`
	Loss    testLoss `yaml:"loss"`
	HCycles int      `yaml:"H_cycles"`
	LCycles int      `yaml:"L_cycles"`
	Theta   float64  `yaml:"rope_theta"`
	Dim     int      `yaml:"dim" help:"follows hidden_size"`
	Hidden2 int      `yaml:"-"`
}

type testConfig struct {
	Arch  testArch `yaml:"arch"`
	Data  string   `yaml:"data_path" flag:"data"`
	LR    float64  `yaml:"lr"`
	EMA   bool     `yaml:"ema"`
	Batch int      `yaml:"global_batch_size"`
	Save  []string `yaml:"eval_save_outputs"`
}

func testBase() testConfig {
	return testConfig{Arch: testArch{Hidden: 128, Loss: testLoss{"a"}, HCycles: 2, LCycles: 3, Theta: 1e4, Dim: 128}, LR: 1e-4, Batch: 64}
}

func newTestSettings() *Settings[testConfig] {
	return &Settings[testConfig]{
		Schema:  NewSchema[testConfig](),
		Foreign: map[string]string{"checkpoint_path": "use --run DIR"},
		Follow: func(c *testConfig, base testConfig, chosen func(string) bool) {
			if !chosen("arch.dim") {
				c.Arch.Dim = c.Arch.Hidden
			}
		},
	}
}

// resolve parses a command line on top of testBase.
func resolve(args ...string) (*Resolved[testConfig], error) {
	s := newTestSettings()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.SetNormalizeFunc(normalizeFlag)
	s.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return s.Resolve(testBase())
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestPrecedencePresetFileCommandLine(t *testing.T) {
	path := writeFile(t, "arch:\n  hidden_size: 256\n  H_cycles: 5\nlr: 3e-4\nema: True\n")
	r, err := resolve("--lr=0.5", "--config", path, "--set", "arch.loss.loss_type=b", "--hidden_size", "512", "--set=arch.hidden_size=1024", "--data-path=x/y")
	require.NoError(t, err)
	want := testBase()
	want.Arch.Hidden, want.Arch.Dim = 1024, 1024 // the later of two; dim follows
	want.Arch.HCycles = 5
	want.Arch.Loss.Kind = "b"
	want.LR, want.EMA, want.Data = 0.5, true, "x/y"
	require.Equal(t, want, r.Value)
	require.True(t, r.Chosen("arch.H_cycles"))
	require.True(t, r.Chosen("arch.hidden_size"))
	require.False(t, r.Chosen("arch.dim"))
	require.False(t, r.Chosen("arch.L_cycles"))
}

func TestNumbersThatAreAccepted(t *testing.T) {
	for text, want := range map[string]float64{
		"3e-4": 3e-4, "1e-04": 1e-4, "1E-4": 1e-4, ".5": .5, "1": 1, "1.0e-04": 1e-4, "+2": 2, "-0": 0,
	} {
		r, err := resolve("--config", writeFile(t, "lr: "+text))
		require.NoError(t, err, text)
		require.Equal(t, want, r.Value.LR, text)
		r, err = resolve("--lr", text)
		require.NoError(t, err, text)
		require.Equal(t, want, r.Value.LR, text)
	}
	for text, want := range map[string]int{"1e3": 1000, "2000.0": 2000, "12": 12, "-3": -3, "0": 0} {
		r, err := resolve("--config", writeFile(t, "global_batch_size: "+text))
		require.NoError(t, err, text)
		require.Equal(t, want, r.Value.Batch, text)
		r, err = resolve("--global-batch-size", text)
		require.NoError(t, err, text)
		require.Equal(t, want, r.Value.Batch, text)
	}
}

// Whole numbers stand in lists of words without quotes.
func TestListOfWholeNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("eval_save_outputs: [1, b, 8]\n"), 0o644))
	r, err := resolve("--config", path)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "b", "8"}, r.Value.Save)
}

func TestFileMistakesNameLineAndNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line string
		says []string
	}{
		"unknown key":        {"lr: 1\narch:\n  hiden_size: 3\n", ":3:", []string{`unknown key "arch.hiden_size"`, "did you mean arch.hidden_size?"}},
		"wrong section":      {"lr: 1\nhidden_size: 3\n", ":2:", []string{`"hidden_size"`, "did you mean arch.hidden_size?"}},
		"dotted key":         {"arch.hidden_size: 3\n", ":1:", []string{"write hidden_size below the section arch"}},
		"case":               {"arch:\n  h_cycles: 3\n", ":2:", []string{"arch.H_cycles"}},
		"no near key":        {"zzzzqqqq: 3\n", ":1:", []string{`unknown key "zzzzqqqq"`}},
		"word for int":       {"\narch:\n  hidden_size: big\n", ":3:", []string{"arch.hidden_size is big", "whole number"}},
		"truncated int":      {"global_batch_size: 64.5\n", ":1:", []string{"64.5", "whole number"}},
		"huge int":           {"global_batch_size: 99999999999999999999999\n", ":1:", []string{"whole number"}},
		"octal":              {"global_batch_size: 010\n", ":1:", []string{"010", "whole number"}},
		"quoted int":         {"global_batch_size: \"64\"\n", ":1:", []string{`the string "64"`, "whole number"}},
		"quoted float":       {"lr: '3e-4'\n", ":1:", []string{"string", "finite number"}},
		"infinite":           {"lr: .inf\n", ":1:", []string{"finite number"}},
		"overflow":           {"lr: 1e999\n", ":1:", []string{"finite number"}},
		"yes":                {"ema: yes\n", ":1:", []string{"is yes", "true or false"}},
		"one":                {"ema: 1\n", ":1:", []string{"true or false"}},
		"number for string":  {"data_path: 12\n", ":1:", []string{"12", "quotes"}},
		"float for string":   {"data_path: 1e-04\n", ":1:", []string{"quotes"}},
		"bool for string":    {"data_path: true\n", ":1:", []string{"quotes"}},
		"empty":              {"lr:\n", ":1:", []string{"empty", "finite number"}},
		"null":               {"lr: ~\n", ":1:", []string{"empty"}},
		"list for number":    {"lr: [1]\n", ":1:", []string{"a list"}},
		"section for number": {"lr:\n  x: 1\n", ":1:", []string{"a section"}},
		"string for list":    {"eval_save_outputs: logits\n", ":1:", []string{"[a, b]"}},
		"fraction in list":   {"eval_save_outputs:\n  - a\n  - 3.5\n", ":3:", []string{"3.5"}},
		"scalar for section": {"arch: 3\n", ":1:", []string{"arch is 3", "indented"}},
		"list at top":        {"- 1\n", ":1:", []string{"a list"}},
		"twice":              {"lr: 1\nlr: 2\n", ":2:", []string{"already defined"}},
		"broken":             {"lr: [1\n", ":1:", []string{"not valid YAML"}},
		"tab":                {"arch:\n\thidden_size: 1\n", ":2:", []string{"not valid YAML"}},
		"two documents":      {"lr: 1\n---\nlr: 2\n", ":3:", []string{"second document"}},
		"alias":              {"lr: &a 1\n", ":1:", []string{"anchor"}},
		"hydra defaults":     {"# x\ndefaults:\n  - arch: hrm_v1\n  - _self_\n", ":2:", []string{"Hydra", "not understood", "copy the keys"}},
		"hydra settings":     {"hydra:\n  output_subdir: null\n", ":1:", []string{"Hydra", "not understood"}},
		"hydra reference":    {"arch:\n  dim: ${.hidden_size}\n", ":2:", []string{"${.hidden_size}", "not understood", "write the value"}},
		"quoted reference":   {"data_path: \"${oc.env:HOME}\"\n", ":1:", []string{"not understood"}},
		"reference in list":  {"eval_save_outputs:\n  - ${x}\n", ":2:", []string{"not understood"}},
		"foreign key":        {"checkpoint_path: x\n", ":1:", []string{"use --run DIR"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, c.text)
			_, err := resolve("--config", path)
			require.Error(t, err)
			require.Equal(t, ExitUsage, ExitCode(err))
			for _, s := range append(c.says, path+c.line) {
				require.ErrorContains(t, err, s)
			}
		})
	}
}

func TestMissingConfigFile(t *testing.T) {
	_, err := resolve("--config", "no/such.yaml")
	require.ErrorContains(t, err, "no/such.yaml")
	require.Equal(t, ExitUsage, ExitCode(err))
}

func TestEmptyConfigFileChangesNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		r, err := resolve("--config", writeFile(t, text))
		require.NoError(t, err)
		require.Equal(t, testBase(), r.Value)
	}
}

func TestCommandLineMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--set", "arch.hidden=3"}, []string{`unknown key "arch.hidden"`, "arch.hidden_size"}},
		{[]string{"--set", "hidden_size=3"}, []string{"did you mean arch.hidden_size?"}},
		{[]string{"--set", "arch=3"}, []string{"arch is a section"}},
		{[]string{"--set", "lr"}, []string{"key=value"}},
		{[]string{"--set", "lr=fast"}, []string{`lr is "fast"`, "finite number"}},
		{[]string{"--set", "global_batch_size=1.5"}, []string{"whole number"}},
		{[]string{"--set", "arch.dim=${.hidden_size}"}, []string{"Hydra"}},
		{[]string{"--data", "${x}"}, []string{"Hydra"}},
		{[]string{"--set", "checkpoint_path=x"}, []string{"use --run"}},
		{[]string{"--hidden-size", "x"}, []string{"--hidden-size", "whole number"}},
		{[]string{"--lr=NaN"}, []string{"finite number"}},
		{[]string{"--ema=maybe"}, []string{"true or false"}},
	} {
		_, err := resolve(c.args...)
		for _, s := range c.says {
			require.ErrorContains(t, err, s, "%v", c.args)
		}
	}
}

type keyError struct{}

func (keyError) Error() string     { return "arch.dim is bad" }
func (keyError) ConfigKey() string { return "arch.dim" }

func TestExplainSaysWhereTheKeyWasChosen(t *testing.T) {
	path := writeFile(t, "arch:\n  dim: 7\n")
	r, err := resolve("--config", path)
	require.NoError(t, err)
	require.ErrorContains(t, r.Explain(keyError{}), path+":2")
	r, err = resolve("--dim=7")
	require.NoError(t, err)
	require.ErrorContains(t, r.Explain(keyError{}), "--dim")
	r, err = resolve()
	require.NoError(t, err)
	require.EqualError(t, r.Explain(keyError{}), "arch.dim is bad")
}

// oddStrings are values that trip naive quoting.
var oddStrings = []string{
	"", " ", "a b", "x: y", "# no", "true", "Yes", "null", "~", "1e-04", "0x1f", "-", "--", "-1", "'", `"`, `a\b`, "tab\there",
	"line\nbreak", "ünï→", "$x", "$(rm)", "a,b", "[a]", "{a: b}", "*a", "&a", "!a", "%a", "@a", "`a`", "data/arc-aug-100",
	".5", ".inf", "012", "2026-11-30", "=", "a=b", "\u0001", "\u2028", "\ufeffx", "C:\\data", "|", ">",
}

func randomConfig(r *rand.Rand) testConfig {
	pick := func() string { return oddStrings[r.IntN(len(oddStrings))] }
	c := testBase()
	c.Data, c.Arch.Loss.Kind = pick(), pick()
	for range r.IntN(4) {
		c.Save = append(c.Save, pick())
	}
	floats := []float64{0, 1, -1, 1e-5, 3e-4, 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 123456789.125, 2.0 / 3}
	c.LR, c.Arch.Theta = floats[r.IntN(len(floats))], floats[r.IntN(len(floats))]
	ints := []int{0, 1, -1, 128, 256, math.MaxInt32, 1 << 53, math.MinInt32}
	c.Batch, c.Arch.Hidden, c.Arch.Dim = ints[r.IntN(len(ints))], ints[r.IntN(len(ints))], ints[r.IntN(len(ints))]
	c.EMA = r.IntN(2) == 0
	return c
}

// A resolved configuration, written as a file or printed as flags, reads back
// to itself whatever its values.
func TestFileAndArgsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := newTestSettings()
	for range 400 {
		c := randomConfig(rng)

		var b strings.Builder
		require.NoError(t, s.WriteYAML(&b, c, "one\ntwo"))
		r, err := resolve("--config", writeFile(t, b.String()))
		require.NoError(t, err, b.String())
		require.Equal(t, c, r.Value, b.String())

		args := s.Args(c, testBase())
		r, err = resolve(args...)
		require.NoError(t, err, "%q", args)
		require.Equal(t, c, r.Value, "%q", args)
	}
}

func TestArgsNameOnlyWhatDiffers(t *testing.T) {
	s := newTestSettings()
	require.Empty(t, s.Args(testBase(), testBase()))
	c := testBase()
	c.Arch.Hidden, c.Arch.Dim = 256, 256
	require.Equal(t, []string{"--hidden-size=256"}, s.Args(c, testBase()))
	c.Arch.Dim = 128 // as the base, but no longer what follows
	require.Equal(t, []string{"--hidden-size=256", "--dim=128"}, s.Args(c, testBase()))
}

func TestShellLine(t *testing.T) {
	require.Equal(t, `hrm train --data=a/b 'x y' 'it'\''s' ''`, ShellLine("hrm", "train", "--data=a/b", "x y", "it's", ""))
}

func TestSchemaRefusesTwoKeysWithOneFlag(t *testing.T) {
	type inner struct {
		Name string `yaml:"name"`
	}
	type outer struct {
		Name  string `yaml:"name"`
		Inner inner  `yaml:"inner"`
	}
	require.Panics(t, func() { NewSchema[outer]() })
}
