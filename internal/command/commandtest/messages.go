package commandtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages runs command lines three times: what goes to standard error is
// nothing at all with --quiet, one JSON object a line with --log-format json,
// and never a part of the results. A line with --json has one document as its
// result.
func (p Program) Messages(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			out, errs := p.OK(t, line+" --quiet")
			require.Empty(t, errs, "--quiet")
			if strings.Contains(line, "--json") {
				require.True(t, json.Valid([]byte(out)), out)
			}
			_, errs = p.OK(t, line+" --log-format json")
			for text := range strings.Lines(errs) {
				var m struct{ Time, Level, Msg string }
				require.NoError(t, json.Unmarshal([]byte(text), &m), text)
				require.Equal(t, "INFO", m.Level, text)
				require.NotEmpty(t, m.Msg)
			}
		})
	}
}
