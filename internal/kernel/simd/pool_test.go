//go:build cgo

package simd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenEveryLevel(t *testing.T) {
	for _, l := range Levels {
		b, err := Open(l, 2)
		if why := Missing(l); why != "" {
			require.ErrorContains(t, err, why)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, l.String(), b.Name())
		require.Equal(t, 2, b.Threads())
		b.Close()
	}
	require.Empty(t, Missing(Portable))
	_, err := Open(Level(9), 1)
	require.Error(t, err)
}
