package netlimit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// addressError is an address that is none on any machine.
type addressError struct{ text string }

func (e *addressError) Error() string { return e.text }

// BadInput tells the command line that the flag is at fault.
func (e *addressError) BadInput() bool { return true }

func wrong(format string, args ...any) error { return &addressError{fmt.Sprintf(format, args...)} }

// Listen listens on an address HOST:PORT of the flag --addr. The error is one
// sentence that says what is wrong with it and what to do; it wraps
// syscall.EADDRINUSE where another program has the port.
func Listen(addr string) (net.Listener, error) {
	const choose = "choose another --addr"
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, wrong("listen on %q: it is no HOST:PORT, such as 127.0.0.1:8080; %s", addr, choose)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return nil, wrong("listen on %s: its port is %q, expected a number from 0 (any that is free) to 65535; %s", addr, port, choose)
	}
	l, err := net.Listen("tcp", addr)
	var name *net.DNSError
	switch {
	case err == nil:
		return l, nil
	case errors.As(err, &name):
		return nil, fmt.Errorf("listen on %s: no host %s is known; %s, such as 127.0.0.1:%s", addr, host, choose, port)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another program has this port (%w); end it, or %s (port 0 is any free one)", addr, syscall.EADDRINUSE, choose)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("listen on %s: this machine has no address %s; %s, such as 127.0.0.1:%s, or 0.0.0.0:%s for all it has", addr, host, choose, port, port)
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("listen on %s: the system does not allow it, as of ports below 1024; %s", addr, choose)
	}
	var op *net.OpError
	if errors.As(err, &op) { // without what stands before it once more
		err = op.Err
	}
	return nil, fmt.Errorf("listen on %s: %w; %s", addr, err, choose)
}
