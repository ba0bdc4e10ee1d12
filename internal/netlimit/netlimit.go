// Package netlimit opens the port of a server and bounds how many connections it
// has open.
package netlimit

import (
	"net"
	"sync"
)

// limited is a listener with at most cap(open) connections open at once;
// others wait to be accepted.
type limited struct {
	net.Listener
	open   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Listener returns l with at most n connections open at once.
func Listener(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, open: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &limitedConn{Conn: c, release: func() { <-l.open }}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
