package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/netlimit"
	"deeploop/internal/train"
	"deeploop/lm/serve"
)

// serveOptions are the flags of lm serve.
type serveOptions struct {
	model modelFlags
	addr  string
	quiet bool
	serve.Options
}

func newServeCmd(s *cli.Streams, open openFunc) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer HTTP requests with a trained language model",
		Long: `Serve a trained language model over HTTP: POST /v1/completions as OpenAI has
it (text or token ids, batches, echo, logprobs, streams), GET /v1/models,
GET /tokenizer_info, POST /tokenize, POST /detokenize, GET /health and
GET /version.

There is no authentication, so the address is one of this machine only unless
--addr says otherwise. One request at a time has the model. The first Ctrl-C
or SIGTERM takes no more requests and lets running ones end; the second ends
the program.

lm-evaluation-harness measures the model so (CONTEXT as /tokenizer_info has it
in model_max_length):

  lm_eval --model local-completions --tasks arc_easy --model_args \
    model=any,base_url=http://127.0.0.1:8080/v1/completions,tokenizer_backend=remote,max_length=CONTEXT,batch_size=16`,
		Example: `  lm serve
  lm serve --run runs/a --addr 127.0.0.1:9000
  curl -d '{"prompt": "Once upon a time", "max_tokens": 20}' http://127.0.0.1:8080/v1/completions`,
		RunE: func(c *cobra.Command, _ []string) error { return serveRun(c.Context(), s, open, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.add(f)
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 is any free one")
	f.StringVar(&o.Model, "model-name", "", "`NAME` of the model in answers (default that of the run's folder)")
	f.Int64Var(&o.MaxBody, "max-body", 1<<20, "largest request in bytes")
	f.IntVar(&o.MaxPrompts, "max-prompts", 64, "most prompts in a request")
	f.IntVar(&o.MaxTokens, "max-tokens", 65536, "most tokens of a request, prompts and drawn ones together")
	f.IntVar(&o.MaxLogprobs, "max-logprobs", 20, "most likeliest tokens at each position")
	f.IntVar(&o.Queue, "queue", 32, "most requests that wait for the model; more are told to come back")
	f.IntVar(&o.MaxConnections, "max-connections", 128, "most open connections")
	f.DurationVar(&o.RequestTimeout, "request-timeout", 10*time.Minute, "longest a request may wait and compute")
	f.DurationVar(&o.ReadTimeout, "read-timeout", 30*time.Second, "longest a request may take to arrive")
	f.DurationVar(&o.WriteTimeout, "write-timeout", 30*time.Second, "longest an answer, or the next piece of a stream, may take to leave")
	f.DurationVar(&o.Grace, "grace", 10*time.Second, "how long running requests may go on when the server ends")
	f.BoolVar(&o.quiet, "quiet", false, "no line per request")
	return cmd
}

// check refuses values that mean nothing.
func (o serveOptions) check() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"max-body", o.MaxBody}, {"max-prompts", int64(o.MaxPrompts)}, {"max-tokens", int64(o.MaxTokens)}, {"max-logprobs", int64(o.MaxLogprobs)},
		{"queue", int64(o.Queue)}, {"max-connections", int64(o.MaxConnections)},
	} {
		if f.value < 1 {
			return cli.Usagef("--%s is %d, expected at least 1", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"request-timeout", o.RequestTimeout}, {"read-timeout", o.ReadTimeout}, {"write-timeout", o.WriteTimeout}, {"grace", o.Grace}} {
		if f.value <= 0 {
			return cli.Usagef("--%s is %v, expected a time such as 30s or 5m", f.name, f.value)
		}
	}
	return nil
}

func serveRun(ctx context.Context, s *cli.Streams, open openFunc, o serveOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	l, err := netlimit.Listen(o.addr) // before the model is read: it may be in vain
	if err != nil {
		return err
	}
	defer l.Close()
	d, tok, closeModel, err := open(s, o.model)
	if err != nil {
		return err
	}
	defer closeModel()
	o.Now, o.Seed = time.Now, uint64(time.Now().UnixNano())
	o.Version = cli.Release()
	if o.Model == "" {
		o.Model = o.model.name()
	}
	level := slog.LevelInfo
	if o.quiet {
		level = slog.LevelWarn
	}
	o.Log = s.ServerLog(level)
	server := serve.New(d, tok, o.Options)
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {
		s.Infof("stopping: running requests have %v; a second signal ends them", o.Grace)
	})
	defer stop()
	s.Infof("model %s: context %d tokens, tokenizer %s of %d", o.Model, d.Context(), tok.Name(), tok.VocabSize())
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		s.Warnf("other machines can reach this address, and there is no authentication")
	}
	s.Infof("listening on http://%s", l.Addr())
	return server.Run(ctx, l)
}

// name is what to call the model in answers.
func (m modelFlags) name() string {
	for _, path := range []string{m.Checkpoint, m.Run} {
		if path != "" {
			return filepath.Base(filepath.Clean(path))
		}
	}
	return "lm"
}
