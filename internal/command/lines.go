package command

import (
	"fmt"
	"io"
	"sync"
)

// lockedWriter writes whole lines of several goroutines, none where quiet.
type lockedWriter struct {
	lock  sync.Mutex
	w     io.Writer
	quiet bool
}

func (l *lockedWriter) linef(format string, args ...any) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.quiet {
		fmt.Fprintf(l.w, format+"\n", args...)
	}
}
