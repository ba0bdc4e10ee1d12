// Command growth shows how time grows with size on this machine: a training
// step over batch, sequence length and depth, fitted and drawn; and every
// kernel at n+1 against n, where a size leaves the width of vectors and tiles.
//
//	go run ./bench/growth                      tables on the standard output
//	go run ./bench/growth -picture growth.png -json growth.json
//	go run ./bench/growth -only tails -threads 1
//
// Others use the machine too, so sizes take turns: every figure is the median
// over rounds, and n and n+1 alternate within a millisecond.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"deeploop/bench"
	"deeploop/internal/cli"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// result is the document of -json.
type result struct {
	Processor string  `json:"processor"`
	Cores     int     `json:"processors"`
	Kernel    string  `json:"kernel"`
	Precision string  `json:"precision"`
	Threads   int     `json:"threads"`
	Commit    string  `json:"commit"`
	Steps     []curve `json:"steps,omitempty"`
	Tails     []tail  `json:"tails,omitempty"`
}

func run() error {
	kernel := flag.String("kernel", pick.Auto, "kernel: "+strings.Join(pick.Kernels, ", ")+" or auto")
	precision := flag.String("precision", pick.Auto, "fp32, bf16 or auto")
	threads := flag.Int("threads", 0, "compute threads; 0 is one per core")
	only := flag.String("only", "", "steps or tails; both where empty")
	rounds := flag.Int("rounds", 9, "turns that sizes take")
	picture := flag.String("picture", "", "draw the steps into a PNG `FILE`")
	document := flag.String("json", "", "write the figures into `FILE`")
	flag.Parse()
	if *only != "" && *only != "steps" && *only != "tails" || *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(cli.ExitUsage)
	}
	choice, err := pick.Open(pick.Request{Kernel: *kernel, Precision: *precision, Threads: *threads})
	if err != nil {
		return err
	}
	defer choice.Backend.Close()
	r := result{
		Processor: profile.Processor(), Cores: runtime.NumCPU(), Kernel: choice.Backend.Name(), Precision: choice.Precision.String(),
		Threads: choice.Backend.Threads(), Commit: cli.Commit(),
	}
	fmt.Printf("%s, %d processors, kernel %s, %s, %d threads, commit %s\n\n", r.Processor, r.Cores, r.Kernel, r.Precision, r.Threads, r.Commit)
	if *only != "tails" {
		if r.Steps, err = timeSteps(choice, *rounds); err != nil {
			return err
		}
		for _, c := range r.Steps {
			fmt.Println(c.markdown())
		}
	}
	if *only != "steps" {
		r.Tails = timeTails(choice, *rounds)
		fmt.Print(tailTable(r.Tails))
	}
	if *picture != "" && len(r.Steps) > 0 {
		if err := draw(*picture, r.Steps); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
	}
	return bench.WriteJSON(*document, r)
}
