// Command gradients compares the error that bf16 makes in gradients with what
// PyTorch's own bf16 makes: same weights, same batch, each side's bf16 against
// its own float32.
//
//	go run ./bench/gradients [-configs A,B,C] [-train 100] [-out FILE] [-json FILE]
//
// Weights are fresh ones, and those after so many training steps on one batch.
// The error of a tensor is |bf16 - fp32| / |fp32|, Euclidean norms.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"deeploop/bench"
	"deeploop/bench/ours"
	"deeploop/bench/peer"
	"deeploop/internal/kernel/pick"
	"deeploop/internal/safetensors"
)

func main() {
	ours.Main()
	have := pick.Available()
	kernel := flag.String("kernel", have[len(have)-1], "kernel of ours")
	configs := flag.String("configs", "A,B,C", "sizes, see bench.Configs")
	train := flag.Int("train", 100, "training steps behind the second set of weights; 0: fresh ones only")
	out := flag.String("out", "", "file to append the table to (default: standard output)")
	js := flag.String("json", "", "file to write all figures to")
	flag.Parse()
	if err := run(*kernel, strings.Split(*configs, ","), *train, *out, *js); err != nil {
		fmt.Fprintln(os.Stderr, "gradients:", err)
		os.Exit(1)
	}
}

func run(kernel string, configs []string, train int, out, js string) error {
	doc := document{Machine: bench.ThisMachine()}
	doc.Machine.Kernel = kernel
	python, err := peer.Beside(&doc.Machine)
	if err != nil {
		return err
	}
	if python == nil {
		return bench.Append(out, doc.Machine.Heading("Gradients in bf16"))
	}
	defer python.Close()
	folder, err := os.MkdirTemp("", "deeploop-gradients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	steps := []int{0}
	if train > 0 {
		steps = append(steps, train)
	}
	for _, name := range configs {
		size, err := bench.Size(name)
		if err != nil {
			return err
		}
		if size.Model != bench.HRM {
			return fmt.Errorf("size %s is no HRM: gradients are compared there", name)
		}
		for _, n := range steps {
			r, err := compare(python, kernel, size, n, folder)
			if err != nil {
				return err
			}
			doc.Results = append(doc.Results, r)
			fmt.Fprint(os.Stderr, r.line())
		}
	}
	if err := bench.WriteJSON(js, doc); err != nil {
		return err
	}
	return bench.Append(out, doc.markdown())
}

func compare(python *peer.Python, kernel string, c bench.Config, train int, folder string) (result, error) {
	r := result{Config: c, Steps: train}
	us, err := ours.Start(kernel, runtime.GOMAXPROCS(0))
	if err != nil {
		return r, err
	}
	defer us.Close()
	e := peer.Environment{Capability: peer.Capabilities(kernel)[0], Wait: "passive", Threads: runtime.GOMAXPROCS(0)}
	them, err := python.Start(kernel, e)
	if err != nil {
		return r, err
	}
	defer them.Close()
	weights := filepath.Join(folder, "weights.safetensors")
	if _, err := us.Do(bench.Request{Op: "open", Config: &c, Precision: "bf16"}); err != nil {
		return r, err
	}
	if train > 0 {
		if _, err := us.Do(bench.Request{Op: "step", Times: train}); err != nil {
			return r, err
		}
	}
	if _, err := us.Do(bench.Request{Op: "export", Out: weights}); err != nil {
		return r, err
	}
	var grads [2]map[string][2][]float32 // of either side: fp32, bf16
	for i, side := range []*bench.Process{us, them} {
		grads[i] = map[string][2][]float32{}
		for k, precision := range []string{"fp32", "bf16"} {
			file := filepath.Join(folder, "gradients.safetensors")
			reply, err := side.Do(bench.Request{Op: "gradients", Config: &c, Precision: precision, Weights: weights, Out: file})
			if err != nil {
				return r, err
			}
			r.Loss[i][k] = reply.Loss
			if err := read(file, grads[i], k); err != nil {
				return r, err
			}
		}
	}
	for name, a := range grads[0] {
		b, ok := grads[1][name]
		if !ok {
			return r, fmt.Errorf("the peer has no gradient of %s", name)
		}
		t := tensor{Name: name, Ours: distance(a[1], a[0]), Peer: distance(b[1], b[0]), Agree: distance(a[0], b[0])}
		t.Ratio = t.Ours / t.Peer
		r.Tensors = append(r.Tensors, t)
	}
	slices.SortFunc(r.Tensors, func(a, b tensor) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func read(path string, into map[string][2][]float32, at int) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, name := range f.Names() {
		v, err := f.Float32s(name)
		if err != nil {
			return err
		}
		pair := into[name]
		pair[at] = v
		into[name] = pair
	}
	return nil
}

// distance is |a-b| / |b|.
func distance(a, b []float32) float64 {
	var num, den float64
	for i, v := range b {
		d := float64(a[i]) - float64(v)
		num += d * d
		den += float64(v) * float64(v)
	}
	return math.Sqrt(num / den)
}
