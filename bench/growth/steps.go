package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"deeploop/hrm"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
)

// curve is the time of a training step over one size, and what fits it.
type curve struct {
	Size    string    `json:"size"`
	Rest    string    `json:"rest"` // the sizes that stay
	Law     string    `json:"law"`  // "a + b·B"
	X       []float64 `json:"x"`
	Seconds []float64 `json:"seconds"` // medians
	Least   []float64 `json:"least_seconds"`
	Fit     []float64 `json:"coefficients"` // a, b, ...
	Fitted  []float64 `json:"fitted_seconds"`
	R2      float64   `json:"r2"`
	Worst   float64   `json:"worst_relative_error"`

	terms []func(float64) float64
}

func constant(float64) float64   { return 1 }
func identity(x float64) float64 { return x }
func square(x float64) float64   { return x * x }

// series is a size that changes.
type series struct {
	curve
	values []int
	set    func(c *hrm.TrainConfig, v int)
}

// base is small, so that many sizes take many turns.
func base(layers, seq, batch int) hrm.TrainConfig {
	c := hrm.PresetLaptop()
	c.Arch.HLayers, c.Arch.LLayers = layers, layers
	c.Arch.SeqLen, c.Arch.VocabSize, c.Arch.NumPuzzleIdentifiers = seq, 12, 1000
	c.GlobalBatchSize = batch
	return c
}

// timeSteps lets the sizes of a series take turns.
func timeSteps(choice pick.Choice, rounds int) ([]curve, error) {
	all := []series{
		{curve{Size: "batch B", Rest: "hidden 128, 1+1 blocks, 100 cells", Law: "a + b·B", terms: []func(float64) float64{constant, identity}},
			[]int{4, 8, 16, 24, 32, 48, 64}, func(c *hrm.TrainConfig, v int) { *c = base(1, 100, v) }},
		{curve{Size: "positions T", Rest: "hidden 128, 1+1 blocks, batch 4", Law: "a + b·T + c·T²", terms: []func(float64) float64{constant, identity, square}},
			[]int{48, 100, 200, 300, 450, 600, 900}, func(c *hrm.TrainConfig, v int) { *c = base(1, v, 4) }},
		{curve{Size: "blocks in each module K", Rest: "hidden 128, 100 cells, batch 8", Law: "a + b·K", terms: []func(float64) float64{constant, identity}},
			[]int{1, 2, 3, 4, 6, 8}, func(c *hrm.TrainConfig, v int) { *c = base(v, 100, 8) }},
	}
	var curves []curve
	for _, s := range all {
		c, err := s.time(choice, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Size, err)
		}
		curves = append(curves, c)
	}
	return curves, nil
}

func (s series) time(choice pick.Choice, rounds int) (curve, error) {
	c := s.curve
	benches := make([]*hrm.Bench, len(s.values))
	seconds := make([][]float64, len(s.values))
	for i, v := range s.values {
		var config hrm.TrainConfig
		s.set(&config, v)
		b, err := hrm.NewBench(config, choice.Backend, choice.Precision, time.Now)
		if err != nil {
			return c, err
		}
		defer b.Close()
		benches[i] = b
	}
	for round := range rounds + 1 {
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", s.Size, round, rounds)
		for i, b := range benches {
			t, err := b.TrainStep()
			if err != nil {
				return c, err
			}
			if round > 0 { // the first makes memory
				seconds[i] = append(seconds[i], t.Seconds)
			}
		}
	}
	for i, v := range s.values {
		x := float64(v)
		if c.Size == "positions T" {
			x = float64(benches[i].Learner.Model.Config.Positions())
		}
		c.X = append(c.X, x)
		c.Seconds = append(c.Seconds, profile.Median(seconds[i]))
		least := seconds[i][0]
		for _, t := range seconds[i] {
			least = min(least, t)
		}
		c.Least = append(c.Least, least)
	}
	c.Fit = fit(c.X, c.Seconds, c.terms...)
	for _, x := range c.X {
		c.Fitted = append(c.Fitted, c.at(x))
	}
	c.R2, c.Worst = quality(c.Seconds, c.Fitted)
	return c, nil
}

// at is the fitted time.
func (c curve) at(x float64) (y float64) {
	for i, f := range c.terms {
		y += c.Fit[i] * f(x)
	}
	return y
}

func (c curve) markdown() string {
	var b strings.Builder
	var named []string
	for i, v := range c.Fit {
		named = append(named, fmt.Sprintf("%c = %.3g", 'a'+i, v))
	}
	fmt.Fprintf(&b, "Training step over %s (%s): %s with %s seconds; R² %.4f, largest error %.1f %%\n\n", c.Size, c.Rest, c.Law, strings.Join(named, ", "), c.R2, 100*c.Worst)
	fmt.Fprintf(&b, "| %s | least, ms | median, ms | fitted, ms |\n| ---: | ---: | ---: | ---: |\n", c.Size)
	for i, x := range c.X {
		fmt.Fprintf(&b, "| %g | %.2f | %.2f | %.2f |\n", x, 1e3*c.Least[i], 1e3*c.Seconds[i], 1e3*c.Fitted[i])
	}
	return b.String()
}
