//go:build cgo

package lm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/kernel"
	"deeploop/internal/kernel/simd"
)

// simdBackends opens every level this machine has.
func simdBackends(t testing.TB, threads int) map[string]kernel.Backend {
	m := map[string]kernel.Backend{}
	for _, l := range simd.Levels {
		if why := simd.Missing(l); why != "" {
			t.Logf("level %v is not tested: %s", l, why)
			continue
		}
		b, err := simd.Open(l, threads)
		require.NoError(t, err)
		m[l.String()] = b
	}
	return m
}
