package runlog

import (
	"log/slog"
	"strings"
	"time"
)

// doing is work that does not say how much of it is done.
type doing struct {
	what  string // "" for none
	since time.Time
	next  time.Time // a line without a terminal
	shown bool      // the line on the terminal is this one's
	stop  chan struct{}
}

const (
	// waitTick is how often a line of what is waited for is rewritten.
	waitTick = 500 * time.Millisecond
	// waitQuietly is how long work may take before a terminal says what it is.
	waitQuietly = time.Second
)

// Doing says what is being waited for, with the time it has taken: after a
// second on a terminal, otherwise after Every and then ever more seldom. It
// ends when something else is waited for or shown, and with End.
func (p *Progress) Doing(what string) {
	if p.off() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited()
	now := p.Now()
	p.doing = doing{what: what, since: now, next: now.Add(p.every()), stop: make(chan struct{})}
	go p.wait(p.doing.stop)
}

func (p *Progress) wait(stop chan struct{}) {
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.waiting(stop)
		}
	}
}

// waiting shows the line of the work that stop belongs to.
func (p *Progress) waiting(stop chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, now := &p.doing, p.Now()
	if d.stop != stop {
		return
	}
	taken := now.Sub(d.since)
	line := strings.Join(append([]string{d.what, duration(taken.Seconds())}, p.memory()...), "  ")
	switch {
	case p.Terminal && taken >= waitQuietly:
		p.rewrite(line)
		d.shown = true
	case !p.Terminal && !now.Before(d.next):
		p.write(slog.LevelInfo, line)
		d.next = now.Add(taken) // after 5 s, 10 s, 20 s ...
	}
}

// waited ends what is waited for. The lock is held.
func (p *Progress) waited() {
	if p.doing.what == "" {
		return
	}
	close(p.doing.stop)
	if p.doing.shown {
		p.clear()
	}
	p.doing = doing{}
}
