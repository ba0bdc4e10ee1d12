package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHalved(t *testing.T) {
	below := func(limit int) func(int) bool { return func(batch int) bool { return batch < limit } }
	require.Equal(t, 768, Halved(768, below(1000)))
	require.Equal(t, 192, Halved(768, below(200)))
	require.Equal(t, 1, Halved(768, below(2)))
	require.Zero(t, Halved(768, below(1)))
}
