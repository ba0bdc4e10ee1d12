// Package files writes files that appear whole or not at all, never over
// something that is not the program's, reads files of bounded size, and asks
// disks for room and durability.
package files

// Error is a path that cannot be read or written as asked.
type Error struct{ Path, Problem string }

func (e *Error) Error() string { return e.Path + " " + e.Problem }

// BadInput tells the command line that the input is at fault.
func (e *Error) BadInput() bool { return true }
