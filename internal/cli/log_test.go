package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// said runs a program that says a few things and fails, and returns what it
// wrote.
func said(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	s := &Streams{In: strings.NewReader(""), Out: &o, Err: &e}
	root := &cobra.Command{Use: "prog", Short: "A program"}
	root.AddCommand(&cobra.Command{Use: "say", Short: "Say something", RunE: func(*cobra.Command, []string) error {
		fmt.Fprintln(s.Out, "result")
		s.Infof("kernel %s", "ref")
		s.Warnf("file a\x1bb is odd")
		fmt.Fprintf(s.With(&o, &e).Lines(), "one\ntwo\npart of")
		s.ServerLog(slog.LevelInfo).Info("request", "status", 200)
		return errors.New("broken")
	}})
	AddLogFlags(root, s)
	code = Run(root, args, s)
	return code, o.String(), e.String()
}

func TestMessagesArePlainLines(t *testing.T) {
	code, out, errs := said("say")
	require.Equal(t, ExitFailure, code)
	require.Equal(t, "result\n", out)
	require.Regexp(t, `^kernel ref\nwarning: file a\\x1bb is odd\none\ntwo\ntime=\S+ level=INFO msg=request status=200\nprog: broken\n$`, errs)
}

func TestMessagesByLevel(t *testing.T) {
	for _, args := range []string{"say --quiet", "say --log-level warn", "--log_level=warn say", "say --quiet --log-level info"} {
		_, out, errs := said(strings.Fields(args)...)
		require.Equal(t, "result\n", out)
		require.Equal(t, "warning: file a\\x1bb is odd\nprog: broken\n", errs, args)
	}
	_, _, errs := said("say", "--log-level", "error")
	require.Equal(t, "prog: broken\n", errs)
	_, _, errs = said("say", "--quiet=false")
	require.Contains(t, errs, "kernel ref")
}

func TestMessagesAsJSON(t *testing.T) {
	_, out, errs := said("say", "--log-format", "json")
	require.Equal(t, "result\n", out)
	var got []string
	for line := range strings.Lines(errs) {
		var m struct {
			Time       string
			Level, Msg string
			Status     int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		require.NotEmpty(t, m.Time)
		got = append(got, m.Level+" "+m.Msg)
	}
	require.Equal(t, []string{"INFO kernel ref", "WARN file a\x1bb is odd", "INFO one", "INFO two", "INFO request", "ERROR broken"}, got)
	_, _, errs = said("say", "--nonsense", "--log-format", "json")
	require.True(t, json.Valid([]byte(errs)), errs)
	_, _, errs = said("say", "--log-format", "json", "--nonsense")
	require.True(t, json.Valid([]byte(errs)), errs)
}

func TestFlagsOfMessages(t *testing.T) {
	for args, want := range map[string]string{
		"say --log-format yaml": "expected text or json",
		"say --log-level loud":  "expected info, warn or error",
	} {
		code, _, errs := said(strings.Fields(args)...)
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, want)
	}
	_, out, _ := said("say", "--help")
	_, flags, ok := strings.Cut(out, "\nFlags of all commands:\n")
	require.True(t, ok, out)
	for _, f := range []string{"--quiet", "--log-format FORMAT", "--log-level LEVEL"} {
		require.Contains(t, flags, f)
	}
	_, out, _ = said("--help")
	require.Contains(t, out, "\nFlags of all commands:\n")
}

// A message takes the place of a line that is being rewritten.
func TestMessagesClearTheLine(t *testing.T) {
	var e bytes.Buffer
	s := &Streams{Err: &e}
	AddLogFlags(&cobra.Command{Use: "prog"}, s)
	s.OnLine(func() { e.WriteString("<clear>") })
	s.Infof("a")
	s.With(&e, &e).Warnf("b")
	require.Equal(t, "<clear>a\n<clear>warning: b\n", e.String())
}

// The handler keeps slog's contract for attributes and groups.
func TestPlainHandlerShowsAttributes(t *testing.T) {
	var e bytes.Buffer
	log := (&Streams{Err: &e}).Log()
	log.With("a", 1).WithGroup("g").Info("text", "b", "x", slog.Attr{})
	log.Error("bad")
	require.Equal(t, "text a=1 g.b=x\nerror: bad\n", e.String())
}
