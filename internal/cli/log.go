package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// logging is how messages look and which there are. The flags set it.
type logging struct {
	json  bool
	level slog.Level
	quiet bool

	mu    sync.Mutex // of the error stream
	clear []func()   // remove lines that are being rewritten
}

// allCommands is the heading of the flags that every command has.
const allCommands = "Flags of all commands"

// AddLogFlags gives all commands below root the flags of messages. s may be nil
// where no command is run.
func AddLogFlags(root *cobra.Command, s *Streams) {
	l := &logging{}
	if s != nil {
		s.log = l
	}
	f := root.PersistentFlags()
	f.BoolVar(&l.quiet, "quiet", false, "only warnings and errors: no progress, no notes (--log-level warn)")
	f.Var(&word{"text", func(v string) error { return l.setFormat(v) }}, "log-format", "`FORMAT` of what goes to standard error: text, or json (a JSON object a line, as log/slog writes it)")
	f.Var(&word{"info", func(v string) error { return l.setLevel(v) }}, "log-level", "`LEVEL` from which it is written: info, warn or error")
	for flag, words := range map[string][]string{"log-format": {"text", "json"}, "log-level": {"info", "warn", "error"}} {
		cobra.CheckErr(root.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)))
	}
	f.VisitAll(func(x *pflag.Flag) { Group(f, x.Name, allCommands) })
}

// word is a flag that takes one of some words.
type word struct {
	value string
	set   func(string) error
}

func (w *word) String() string { return w.value }
func (w *word) Type() string   { return "string" }
func (w *word) Set(v string) error {
	err := w.set(v)
	if err == nil {
		w.value = v
	}
	return err
}

func (l *logging) setFormat(v string) error {
	if v != "text" && v != "json" {
		return fmt.Errorf("expected text or json")
	}
	l.json = v == "json"
	return nil
}

func (l *logging) setLevel(v string) error {
	levels := map[string]slog.Level{"info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, known := levels[v]
	if !known {
		return fmt.Errorf("expected info, warn or error")
	}
	l.level = level
	return nil
}

// Level is that of --quiet and --log-level together.
func (l *logging) Level() slog.Level {
	if l.quiet {
		return max(l.level, slog.LevelWarn)
	}
	return l.level
}

// plain is logging without flags.
var plain = &logging{}

func (s *Streams) logging() *logging {
	if s.log == nil {
		return plain
	}
	return s.log
}

// With returns streams with these outputs and the same kind of messages.
func (s *Streams) With(out, errs io.Writer) *Streams {
	return &Streams{In: s.In, Out: out, Err: errs, log: s.log}
}

// Quiet reports that only warnings are wanted.
func (s *Streams) Quiet() bool { return s.logging().Level() > slog.LevelInfo }

// JSON reports that messages are JSON lines.
func (s *Streams) JSON() bool { return s.logging().json }

// Log writes what a command says beside its results to the error stream: plain
// lines, a warning after "warning: ", or JSON.
func (s *Streams) Log() *slog.Logger {
	l := s.logging()
	w := &screen{l, s.Err}
	if l.json {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l}))
	}
	return slog.New(&lines{w: w, level: l})
}

// ServerLog is the log of a server, with times: from this level, or a higher
// one that was asked for.
func (s *Streams) ServerLog(level slog.Level) *slog.Logger {
	l := s.logging()
	o := &slog.HandlerOptions{Level: max(level, l.Level())}
	if l.json {
		return slog.New(slog.NewJSONHandler(&screen{l, s.Err}, o))
	}
	return slog.New(slog.NewTextHandler(&screen{l, s.Err}, o))
}

// Infof says something.
func (s *Streams) Infof(format string, args ...any) {
	s.Log().Info(fmt.Sprintf(format, args...))
}

// Warnf warns.
func (s *Streams) Warnf(format string, args ...any) {
	s.Log().Warn(fmt.Sprintf(format, args...))
}

// Lines says every line that is written to it.
func (s *Streams) Lines() io.Writer { return &lineWriter{say: s.Infof} }

// OnLine takes what removes a line that is being rewritten on the terminal: it
// is called before anything else is written there.
func (s *Streams) OnLine(clear func()) {
	if l := s.log; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clear = append(l.clear, clear)
	}
}

// screen writes whole messages one after the other.
type screen struct {
	l *logging
	w io.Writer
}

func (s *screen) Write(b []byte) (int, error) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.w != io.Discard {
		for _, clear := range s.l.clear {
			clear()
		}
	}
	return s.w.Write(b)
}

// lines is the handler of plain text: the message, then the attributes.
type lines struct {
	w     io.Writer
	level slog.Leveler
	attrs string
	group string
}

func (h *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h *lines) Handle(_ context.Context, r slog.Record) error {
	text := r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		text += h.attr(a)
		return true
	})
	switch {
	case r.Level >= slog.LevelError:
		text = "error: " + text
	case r.Level >= slog.LevelWarn:
		text = "warning: " + text
	}
	_, err := io.WriteString(h.w, printable(text)+"\n")
	return err
}

func (h *lines) attr(a slog.Attr) string {
	if a.Equal(slog.Attr{}) {
		return ""
	}
	return fmt.Sprintf(" %s%s=%v", h.group, a.Key, a.Value.Resolve())
}

func (h *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	for _, a := range attrs {
		c.attrs += h.attr(a)
	}
	return &c
}

func (h *lines) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.group += name + "."
	}
	return &c
}

// lineWriter cuts what is written into lines.
type lineWriter struct {
	say  func(format string, args ...any)
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte{'\n'})
		if !found {
			return len(b), nil
		}
		w.say("%s", strings.TrimRight(string(line), "\r"))
		w.rest = rest
	}
}
