//go:build unix

package augment

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An array that is made shorter while it is open is an error, not a crash.
func TestTruncatedWhileOpen(t *testing.T) {
	dir, _ := build(t, load(t, someTasks(6)), small(40))
	d, err := OpenDataset(dir)
	require.NoError(t, err)
	defer d.Close()
	path := filepath.Join(dir, "train/all__inputs.npy")
	require.NoError(t, os.Truncate(path, 0))
	_, err = d.Train.Inputs.Row(d.Train.Examples()-1, nil)
	require.ErrorContains(t, err, path+": the file was made shorter")
}
