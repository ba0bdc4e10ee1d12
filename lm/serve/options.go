package serve

import (
	"log/slog"
	"time"
)

// Options are the settings of a server. Zero values mean the defaults named.
type Options struct {
	Model   string           // name of the model, "model"
	Version string           // of the program
	Now     func() time.Time // the clock, required
	Log     *slog.Logger     // a line per request; nothing by default
	Seed    uint64           // where seeds of prompts without one begin

	MaxBody        int64 // bytes of a request's body, 1 MiB
	MaxPrompts     int   // prompts in a request, 64
	MaxTokens      int   // tokens of a request, prompts and drawn ones, 65536
	MaxLogprobs    int   // likeliest tokens at each position, 20
	Queue          int   // requests that wait for the model, 32
	MaxConnections int   // open connections, 128; more wait to be accepted

	ReadHeaderTimeout time.Duration // for a request's header, 10 s
	ReadTimeout       time.Duration // for a whole request, 30 s
	WriteTimeout      time.Duration // for a response, or the next piece of a stream, 30 s
	IdleTimeout       time.Duration // between requests of a connection, 2 min
	RequestTimeout    time.Duration // waiting for the model and computing, 10 min
	Grace             time.Duration // for running requests when the server ends, 10 s
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		panic("serve: Options.Now is missing")
	}
	orDefault(&o.Model, "model")
	orDefault(&o.Version, "unknown")
	orDefault(&o.Log, slog.New(slog.DiscardHandler))
	orDefault(&o.MaxBody, 1<<20)
	orDefault(&o.MaxPrompts, 64)
	orDefault(&o.MaxTokens, 65536)
	orDefault(&o.MaxLogprobs, 20)
	orDefault(&o.Queue, 32)
	orDefault(&o.MaxConnections, 128)
	orDefault(&o.ReadHeaderTimeout, 10*time.Second)
	orDefault(&o.ReadTimeout, 30*time.Second)
	orDefault(&o.WriteTimeout, 30*time.Second)
	orDefault(&o.IdleTimeout, 2*time.Minute)
	orDefault(&o.RequestTimeout, 10*time.Minute)
	orDefault(&o.Grace, 10*time.Second)
	return o
}
