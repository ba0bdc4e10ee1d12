// Package picktest opens kernels for the tests of models.
package picktest

import (
	"testing"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/pick"
)

// Backends opens every kernel that runs here with so many threads, by name; the
// log says which do not and why. They close with the test.
func Backends(t testing.TB, threads int) map[string]kernel.Backend {
	t.Helper()
	m := map[string]kernel.Backend{}
	for _, name := range pick.Kernels {
		c, err := pick.Open(pick.Request{Kernel: name, Precision: "fp32", Threads: threads})
		if err != nil {
			t.Logf("not tested: %v", err)
			continue
		}
		t.Cleanup(c.Backend.Close)
		m[name] = c.Backend
	}
	return m
}
