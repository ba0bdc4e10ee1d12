package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Process is one side: it answers a line of JSON with a line of JSON.
type Process struct {
	Name  string
	Hello Reply // what it said first
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

// Start runs a command that speaks the protocol, with env added to ours.
func Start(name string, env []string, command string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(command, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if p.Hello, err = p.read(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Do sends a request and waits for the reply.
func (p *Process) Do(r Request) (Reply, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return Reply{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return Reply{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return p.read()
}

func (p *Process) read() (Reply, error) {
	var r Reply
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%s ended: %w", p.Name, err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("%s said %q: %w", p.Name, line, err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", p.Name, r.Error)
	}
	return r, nil
}

// Close ends the process.
func (p *Process) Close() error {
	p.in.Close()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		return errors.Join(p.cmd.Process.Kill(), <-done)
	}
}
