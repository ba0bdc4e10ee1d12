package checkpoint

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Owner says who holds a run's lock.
type Owner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	BootID  string    `json:"boot_id,omitempty"` // differs after a restart of the machine
	Started time.Time `json:"started"`
}

// Lock is the right to write into a run's folder. The operating system ties it
// to the process, so that one left by a process that was killed does not
// block; the file's content is there for messages and for file systems without
// locks.
type Lock struct {
	f    *os.File
	path string
}

// LockFile is the name of the lock inside a run's folder.
const LockFile = "lock"

// LockedError is a run that another living process writes to.
type LockedError struct {
	Path  string
	Owner Owner
}

func (e *LockedError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("lock %s: another process holds it", e.Path)
	}
	where := ""
	if host, _ := os.Hostname(); host != e.Owner.Host {
		where = " on " + e.Owner.Host
	}
	return fmt.Sprintf("lock %s: process %d%s uses this run since %s; stop it or choose another run (if it is gone, remove the file)",
		e.Path, e.Owner.PID, where, e.Owner.Started.Format(time.DateTime))
}

// BadInput marks a refused request for the exit code.
func (e *LockedError) BadInput() bool { return true }

// Acquire takes the lock of the folder dir, which must exist. The error is a
// *LockedError when a living process holds it.
func Acquire(dir string, now time.Time) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	me := self(now)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock run: %w", err)
		}
		got, supported, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		owner := readOwner(f)
		if (supported && !got) || !mayTake(owner, me, supported) {
			f.Close()
			return nil, &LockedError{path, owner}
		}
		if !sameFile(f, path) { // the last holder removed it meanwhile
			f.Close()
			continue
		}
		l := &Lock{f, path}
		if err := l.write(me); err != nil {
			l.Release()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return l, nil
	}
}

// InUse reports whether a living process holds the lock of the folder dir, as
// far as the lock's file tells: it does not touch the lock.
func InUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return !mayTake(readOwner(f), self(time.Time{}), false)
}

// mayTake decides whether a lock whose file names old is free. got is true
// when the system's lock was obtained: then every process of this machine that
// held it is gone, and only a file system shared with another machine leaves
// doubt.
func mayTake(old, me Owner, got bool) bool {
	if old.PID == 0 {
		return true
	}
	sameBoot := old.BootID != "" && old.BootID == me.BootID
	sameHost := old.Host == me.Host
	switch {
	case got:
		return sameBoot || sameHost
	case sameBoot:
		return !alive(old.PID)
	case sameHost:
		return old.BootID != me.BootID || !alive(old.PID)
	}
	return false
}

// Release gives the lock up.
func (l *Lock) Release() error {
	// Where an open file cannot be removed (Windows) an empty one stays, which
	// names no owner.
	_ = l.f.Truncate(0)
	os.Remove(l.path) // before closing: nobody can hold it yet
	return l.f.Close()
}

func (l *Lock) write(o Owner) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err = l.f.WriteAt(append(b, '\n'), 0)
	return err
}

func self(now time.Time) Owner {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return Owner{PID: os.Getpid(), Host: host, BootID: strings.TrimSpace(string(boot)), Started: now}
}

func readOwner(f *os.File) Owner {
	var o Owner
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
