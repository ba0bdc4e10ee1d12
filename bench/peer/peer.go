// Package peer runs what this project is compared with: training steps of HRM
// and of the looped language model and single matrix products in PyTorch, by
// the Python programs of this folder (hrm.py and lm.py are the models, check.py
// their test, serve.py the server).
package peer

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"deeploop/bench"
)

//go:embed *.py
var programs embed.FS

// Python is an interpreter that has PyTorch.
type Python struct {
	Path    string
	Version string // of PyTorch
	folder  string
}

// ErrNone says that the comparison is skipped.
var ErrNone = errors.New("no PyTorch: python3 cannot import torch (Debian: apt-get install python3-torch; or name an interpreter in BENCH_PYTHON)")

// Find looks for PyTorch: in $BENCH_PYTHON, the system's python3, then the
// path's. It returns ErrNone when there is none. Close removes the programs'
// copies again.
func Find() (*Python, error) {
	candidates := []string{"/usr/bin/python3", "python3"}
	if p := os.Getenv("BENCH_PYTHON"); p != "" {
		candidates = []string{p}
	}
	for _, path := range candidates {
		out, err := exec.Command(path, "-c", "import torch; print(torch.__version__)").Output()
		if err != nil {
			continue
		}
		folder, err := os.MkdirTemp("", "deeploop-peer")
		if err != nil {
			return nil, err
		}
		p := &Python{path, strings.TrimSpace(string(out)), folder}
		if err := os.CopyFS(folder, programs); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p, nil
	}
	return nil, ErrNone
}

// Beside is Find for figures of m, which it tells what there is; the result is
// nil where nothing is.
func Beside(m *bench.Machine) (*Python, error) {
	p, err := Find()
	if errors.Is(err, ErrNone) {
		m.Peer = "skipped, " + err.Error()
		fmt.Fprintln(os.Stderr, m.Peer)
		return nil, nil
	}
	if err == nil {
		m.Peer = "PyTorch " + p.Version
	}
	return p, err
}

// Close removes the copies of the programs.
func (p *Python) Close() error { return os.RemoveAll(p.folder) }

// Check compares the peer with recorded reference numbers.
func (p *Python) Check(golden string) (string, error) {
	out, err := exec.Command(p.Path, filepath.Join(p.folder, "check.py"), golden).CombinedOutput()
	return string(out), err
}

// Capabilities are the values of ATEN_CPU_CAPABILITY worth trying where a
// kernel of ours uses that instruction set. PyTorch itself prefers avx2.
func Capabilities(kernel string) []string {
	switch kernel {
	case "avx512", "amx":
		return []string{"avx2", "avx512"}
	case "avx2":
		return []string{"avx2"}
	}
	return []string{"default"}
}

// Environment is what a process of the peer runs in.
type Environment struct {
	Capability string // ATEN_CPU_CAPABILITY
	// Wait is OMP_WAIT_POLICY: passive, or active for what it is by default. PyTorch's threads and those
	// of OpenBLAS are two sets: while one works, the other must not spin.
	Wait string
	// Memory is "keep" where freed memory stays with the process, so that large
	// tensors need no fresh pages in every step; glibc only.
	Memory  string
	Threads int
}

// Start starts a server, limited to the instructions that the kernel of ours
// with that name uses: "PyTorch's best of that kind".
func (p *Python) Start(kernel string, e Environment) (*bench.Process, error) {
	n := fmt.Sprint(e.Threads)
	env := []string{"OMP_NUM_THREADS=" + n, "OPENBLAS_NUM_THREADS=" + n, "ATEN_CPU_CAPABILITY=" + e.Capability}
	if e.Wait == "passive" {
		env = append(env, "OMP_WAIT_POLICY=passive")
	}
	if e.Memory == "keep" {
		env = append(env, "MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1099511627776", "MALLOC_TOP_PAD_=67108864")
	}
	// OpenBLAS takes processors newer than itself for old ones, so it is told;
	// each of its names is a processor with these instructions.
	switch kernel {
	case "amx":
		env = append(env, "OPENBLAS_CORETYPE=SkylakeX")
	case "avx512":
		env = append(env, "OPENBLAS_CORETYPE=SkylakeX", "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
	case "avx2":
		env = append(env, "OPENBLAS_CORETYPE=Haswell", "ONEDNN_MAX_CPU_ISA=AVX2")
	default:
		env = append(env, "OPENBLAS_CORETYPE=Prescott", "ONEDNN_MAX_CPU_ISA=SSE41")
	}
	name := fmt.Sprintf("peer %s x%d", e.Capability, e.Threads)
	return bench.Start(name, env, p.Path, filepath.Join(p.folder, "serve.py"))
}
