// Command products times single matrix products (forward, dX, dW) against the
// same product in PyTorch, which is oneDNN in bf16 and OpenBLAS in fp32, by
// turns:
//
//	go run ./bench/products [-precisions bf16,fp32] [-threads 2,1] [-kinds forward,dx,dw] [-kernel auto] [-rounds 3] [-shapes 40] [-out FILE] [-json FILE]
//
// A round is: ceiling probe, ours, ceiling probe, the peer's; each product is
// repeated for some milliseconds. Ratios and shares of the ceiling (the higher
// probe of the two) are taken within a round, figures are medians of rounds.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"deeploop/bench"
	"deeploop/bench/ours"
	"deeploop/bench/peer"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/profile"
)

func main() {
	ours.Main()
	have := pick.Available()
	kernel := flag.String("kernel", have[len(have)-1], "kernel of ours; the peer is limited to its instructions")
	precisions := flag.String("precisions", "bf16,fp32", "bf16, fp32 or both")
	threads := flag.String("threads", fmt.Sprintf("%d,1", runtime.GOMAXPROCS(0)), "numbers of threads")
	only := flag.String("kinds", strings.Join(kinds, ","), "products: forward, dx, dw or some of them")
	rounds := flag.Int("rounds", 3, "rounds of each product")
	first := flag.Int("shapes", len(shapes), "only so many shapes")
	out := flag.String("out", "", "file to append the tables to (default: standard output)")
	js := flag.String("json", "", "file to write all figures to")
	flag.Parse()
	kinds = strings.Split(*only, ",")
	if err := run(*kernel, strings.Split(*precisions, ","), strings.Split(*threads, ","), *rounds, shapes[:min(*first, len(shapes))], *out, *js); err != nil {
		fmt.Fprintln(os.Stderr, "products:", err)
		os.Exit(1)
	}
}

var kinds = []string{"forward", "dx", "dw"}

// A side repeats a product for workTime, a probe takes probeTime; waiting
// threads of the side before get settle to go to sleep, those of OpenBLAS
// settleFor: with 30 ms they still spun and halved what ours and the
// probe reach.
const (
	workTime  = 0.015
	probeTime = 0.008
	settle    = 4 * time.Millisecond
	settleFor = 150 * time.Millisecond
)

func run(kernel string, precisions, threads []string, rounds int, list []shape, out, js string) error {
	doc := document{Machine: bench.ThisMachine()}
	doc.Machine.Kernel = kernel
	python, err := peer.Beside(&doc.Machine)
	if err != nil {
		return err
	}
	if python != nil {
		defer python.Close()
	}
	for _, t := range threads {
		n, err := strconv.Atoi(t)
		if err != nil {
			return err
		}
		for _, p := range precisions {
			g, err := compare(python, kernel, p, n, rounds, list)
			if err != nil {
				return err
			}
			doc.Groups = append(doc.Groups, g)
			if err := bench.WriteJSON(js, doc); err != nil {
				return err
			}
		}
	}
	return bench.Append(out, doc.markdown())
}

// compare measures all products of one precision and thread count.
func compare(python *peer.Python, kernel, precision string, threads, rounds int, list []shape) (group, error) {
	g := group{Precision: precision, Threads: threads}
	us, err := ours.Start(kernel, threads)
	if err != nil {
		return g, err
	}
	defer us.Close()
	var them *bench.Process
	if python != nil {
		// PyTorch makes a new tensor for each result; ours has one. So its memory is
		// kept, or the largest would be fresh pages every time.
		e := peer.Environment{Capability: peer.Capabilities(kernel)[0], Wait: "active", Memory: "keep", Threads: threads}
		if precision == "fp32" {
			e.Wait = "passive"
		}
		if them, err = python.Start(kernel, e); err != nil {
			return g, err
		}
		defer them.Close()
	}
	rest := settle
	if precision == "fp32" && threads > 1 {
		rest = settleFor
	}
	for _, s := range list {
		for _, kind := range kinds {
			p := product{Shape: s, Kind: kind}
			err := p.measure(us, them, precision, rounds, rest)
			if err != nil && them != nil { // oneDNN has no bf16 below AVX-512
				fmt.Fprintln(os.Stderr, err)
				g.PeerFails = err.Error()
				them.Close()
				them = nil
				err = p.measure(us, them, precision, rounds, rest)
			}
			if err != nil {
				return g, err
			}
			g.Products = append(g.Products, p)
		}
	}
	g.summarise()
	fmt.Fprint(os.Stderr, g.lines())
	return g, nil
}

func (p *product) measure(us, them *bench.Process, precision string, rounds int, rest time.Duration) error {
	request := func(times int) bench.Request {
		return bench.Request{Op: "product", Precision: precision, Kind: p.Kind, M: p.Shape.M, N: p.Shape.N, K: p.Shape.K, Times: times}
	}
	// enough repeats to fill workTime
	repeats := func(side *bench.Process) (int, error) {
		r, err := side.Do(request(3))
		if err != nil {
			return 0, err
		}
		return max(1, int(math.Ceil(workTime/r.Seconds[2]))), nil
	}
	times, err := repeats(us)
	if err != nil {
		return err
	}
	theirs := 0
	if them != nil {
		if theirs, err = repeats(them); err != nil {
			return err
		}
	}
	probe := bench.Request{Op: "probe", Precision: precision, Seconds: probeTime}
	var seconds, other, ratio, share []float64
	for range rounds {
		time.Sleep(rest)
		before, err := us.Do(probe)
		if err != nil {
			return err
		}
		a, err := us.Do(request(times))
		if err != nil {
			return err
		}
		after, err := us.Do(probe)
		if err != nil {
			return err
		}
		mine := profile.SpreadOf(a.Seconds).Median
		seconds = append(seconds, mine)
		if ceiling := max(before.GFLOPS, after.GFLOPS); ceiling > 0 {
			share = append(share, p.Shape.flop()/1e9/mine/ceiling)
		}
		if them != nil {
			time.Sleep(settle)
			b, err := them.Do(request(theirs))
			if err != nil {
				return err
			}
			t := profile.SpreadOf(b.Seconds).Median
			other, ratio = append(other, t), append(ratio, t/mine)
		}
	}
	p.Seconds, p.PeerSeconds = profile.SpreadOf(seconds), profile.SpreadOf(other)
	p.Ratio, p.Share = profile.SpreadOf(ratio), profile.SpreadOf(share)
	p.GFLOPS = p.Shape.flop() / 1e9 / p.Seconds.Median
	if them != nil {
		p.PeerGFLOPS = p.Shape.flop() / 1e9 / p.PeerSeconds.Median
	}
	return nil
}
