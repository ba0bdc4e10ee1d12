package decode

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTextNeverCutsARune(t *testing.T) {
	const whole = "aé€😀 z\u00a0ﬀ"
	for size := 1; size <= 5; size++ {
		text, got := NewText(), ""
		for b := []byte(whole); len(b) > 0; {
			n := min(size, len(b))
			out, stopped := text.Add(b[:n])
			require.False(t, stopped)
			require.True(t, utf8.Valid(out), "%q", out)
			require.Less(t, text.Pending(), 4)
			got += string(out)
			b = b[n:]
		}
		require.Equal(t, whole, got+string(text.Rest()))
		require.True(t, utf8.ValidString(got))
	}
}

// Bytes that belong to no rune come through and hold nothing back.
func TestTextLetsInvalidBytesThrough(t *testing.T) {
	for _, whole := range []string{"\xff\xfea", "\x80\x80\x80\x80\x80", "a\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc3\xc3\xa9", "\xe2\x28\xa1"} {
		text, got := &Text{}, ""
		for i := range len(whole) {
			out, _ := text.Add([]byte{whole[i]})
			got += string(out)
			require.Less(t, text.Pending(), 4)
		}
		require.Equal(t, whole, got+string(text.Rest()))
	}
}

func TestTextEndsBeforeAStopString(t *testing.T) {
	for _, c := range []struct {
		stops []string
		whole string
		want  string
		found bool
	}{
		{[]string{"\n\n"}, "one\ntwo\n\nthree", "one\ntwo", true},
		{[]string{"\n\n"}, "one\ntwo\n", "one\ntwo\n", false},
		{[]string{"abab"}, "xababab", "x", true},
		{[]string{"aab"}, "aaab", "a", true},
		{[]string{"later", "la"}, "blater", "b", true},
		{[]string{"END", "§"}, "a§END", "a", true},
		{[]string{"", "x"}, "abc", "abc", false},
		{[]string{"a"}, "a", "", true},
		{nil, "abc", "abc", false},
		{[]string{"é"}, "caf\u00e9s", "caf", true},
		{[]string{"\xa9"}, "caf\u00e9s", "caf\xc3", true}, // a stop inside a rune is the caller's wish
	} {
		for size := 1; size <= len(c.whole); size++ {
			text, got, found := NewText(c.stops...), "", false
			for b := []byte(c.whole); len(b) > 0 && !found; {
				n := min(size, len(b))
				var out []byte
				out, found = text.Add(b[:n])
				got += string(out)
				b = b[n:]
				require.True(t, strings.HasPrefix(c.want, got), "gave out %q of %q too early", got, c.want)
			}
			require.Equal(t, c.found, found, "%+v", c)
			require.Equal(t, c.want, got+string(text.Rest()), "%+v", c)
			out, stopped := text.Add([]byte("more"))
			require.True(t, stopped)
			require.Empty(t, out)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("aé€😀", "€", uint8(1))
	f.Add("\xe2\x82\xacx", "\x82", uint8(2))
	f.Fuzz(func(t *testing.T, whole, stop string, size uint8) {
		text, got, found := NewText(stop), "", false
		for b := []byte(whole); len(b) > 0 && !found; {
			n := min(int(size%7)+1, len(b))
			var out []byte
			out, found = text.Add(b[:n])
			got += string(out)
			b = b[n:]
		}
		got += string(text.Rest())
		want := whole
		if i := strings.Index(whole, stop); stop != "" && i >= 0 {
			want = whole[:i]
		}
		require.Equal(t, want, got)
	})
}
