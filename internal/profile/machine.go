package profile

import (
	"bytes"
	"os"
	"runtime"
)

// Processor returns the name of this machine's processor where the system
// tells (Linux), else its architecture.
func Processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range bytes.Split(b, []byte("\n")) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(value))
		}
	}
	return runtime.GOARCH
}
