package wording

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	keys := []string{"hidden_size", "H_cycles", "L_cycles", "lr", "epochs", "steps"}
	for name, want := range map[string]string{
		"hiddensize": "hidden_size", "hidden_sise": "hidden_size", "h_cycles": "H_cycles", "l_cycles": "L_cycles",
		"epoch": "epochs", "Steps": "steps", "spets": "", "setps": "steps", "hid": "hidden_size", "zzz": "", "": "", "lrr": "lr",
	} {
		require.Equal(t, want, Nearest(name, keys), name)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "acb", 1}, {"abc", "abcd", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		require.Equal(t, c.want, Distance(c.a, c.b), "%s %s", c.a, c.b)
	}
}

func TestList(t *testing.T) {
	require.Equal(t, "", List(nil, 2))
	require.Equal(t, "a, b", List([]string{"a", "b"}, 2))
	require.Equal(t, "a, b and 1 more", List([]string{"a", "b", "c"}, 2))
}

func TestCount(t *testing.T) {
	require.Equal(t, "0 blocks", Count(0, "block"))
	require.Equal(t, "1 block", Count(1, "block"))
	require.Equal(t, "2 blocks", Count(2, "block"))
}

func TestBytes(t *testing.T) {
	require.Equal(t, "5.2 MB", Bytes(5_242_880))
	require.Equal(t, "1.80 GB", Bytes(1.8e9))
}
