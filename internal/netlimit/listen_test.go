//go:build unix

package netlimit

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
)

// Every way in which an address cannot be had is one sentence that says what to
// do, and says nothing twice.
func TestListenSaysWhatIsWrong(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	_, port, err := net.SplitHostPort(taken)
	require.NoError(t, err)
	for addr, want := range map[string]string{
		taken:               "listen on " + taken + ": another program has this port (address already in use); end it, or choose another --addr (port 0 is any free one)",
		"nowhere":           `listen on "nowhere": it is no HOST:PORT, such as 127.0.0.1:8080; choose another --addr`,
		"":                  `listen on "": it is no HOST:PORT, such as 127.0.0.1:8080; choose another --addr`,
		"a:b:c":             `listen on "a:b:c": it is no HOST:PORT, such as 127.0.0.1:8080; choose another --addr`,
		"127.0.0.1:99999":   `listen on 127.0.0.1:99999: its port is "99999", expected a number from 0 (any that is free) to 65535; choose another --addr`,
		"127.0.0.1:-1":      `listen on 127.0.0.1:-1: its port is "-1", expected a number from 0 (any that is free) to 65535; choose another --addr`,
		"127.0.0.1:x":       `listen on 127.0.0.1:x: its port is "x", expected a number from 0 (any that is free) to 65535; choose another --addr`,
		"256.0.0.1:" + port: "listen on 256.0.0.1:" + port + ": no host 256.0.0.1 is known; choose another --addr, such as 127.0.0.1:" + port,
		"192.0.2.1:" + port: "listen on 192.0.2.1:" + port + ": this machine has no address 192.0.2.1; choose another --addr, such as 127.0.0.1:" + port + ", or 0.0.0.0:" + port + " for all it has",
	} {
		l, err := Listen(addr)
		if err == nil {
			l.Close()
		}
		require.EqualError(t, err, want, addr)
		code := cli.ExitFailure // of this machine, now
		if strings.Contains(want, "HOST:PORT") || strings.Contains(want, "its port is") {
			code = cli.ExitUsage // of any
		}
		require.Equal(t, code, cli.ExitCode(err), addr)
	}
}
