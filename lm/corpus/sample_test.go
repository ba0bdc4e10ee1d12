package corpus

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSample(t *testing.T) {
	for tokenizer, vocab := range map[string]int{"byte": 257, "char": 0} {
		d, err := Sample(tokenizer)
		require.NoError(t, err)
		if vocab > 0 {
			require.Equal(t, vocab, d.Tokenizer.VocabSize())
		}
		require.Equal(t, string(sampleText), decode(t, d, d.Train)+decode(t, d, d.Val))
		require.InDelta(t, 0.1, float64(d.Val.Len())/float64(d.Train.Len()+d.Val.Len()), 0.001)
		require.Equal(t, int64(len(sampleText)), d.Manifest.Train.Bytes+d.Manifest.Val.Bytes)
		again, err := Sample(tokenizer)
		require.NoError(t, err)
		require.Equal(t, d.Hash, again.Hash)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)
		require.NoError(t, d.Close())
	}
	_, err := Sample("gpt2")
	require.ErrorContains(t, err, "expected char or byte")
}

// The committed text is what the generator writes.
func TestSampleIsGenerated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "sample.txt")
	msg, err := exec.Command("go", "run", "./samplegen", "-out", out).CombinedOutput()
	require.NoError(t, err, string(msg))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, string(text), string(sampleText))
}
