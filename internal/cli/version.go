package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Number is the version of both programs.
const Number = "0.1.0"

// commit is set by the Makefile (-ldflags -X); a plain go build stamps the
// binary itself.
var commit string

// Commit returns the commit the program was built from, "-dirty" appended
// when files differed from it, or "unknown".
func Commit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if revision == "" {
		return "unknown"
	}
	return revision + dirty
}

// Release is number and commit, as programs show them.
func Release() string { return Number + " (commit " + Commit() + ")" }

// Writer is the version of a program that writes a file, as files name it.
func Writer(program string) string { return program + " " + Number + " (" + Commit() + ")" }

// Version is what --version prints after the program's name: number, commit,
// Go and the kernels this machine can use.
func Version(kernels []string) string {
	return fmt.Sprintf("%s (commit %s, %s)\nkernels: %s", Number, Commit(), runtime.Version(), strings.Join(kernels, ", "))
}
