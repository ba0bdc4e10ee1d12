package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

func TestProgramAnswers(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		out  string
		err  string
	}{
		{[]string{"--version"}, 0, "lm " + cli.Number + " (commit ", ""},
		{nil, 0, "prepare", ""},
		{[]string{"prepaer"}, 2, "", "did you mean prepare?"},
		{[]string{"--verison"}, 2, "", "did you mean --version?"},
	} {
		var out, errs bytes.Buffer
		code := run(c.args, &cli.Streams{Out: &out, Err: &errs})
		require.Equal(t, c.code, code, "%v: %s", c.args, errs.String())
		require.Contains(t, out.String(), c.out)
		require.Contains(t, errs.String(), c.err)
	}
}
