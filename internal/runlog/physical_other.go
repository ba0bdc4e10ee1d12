//go:build !linux

package runlog

// PhysicalBytes returns the memory of this machine, 0 where the system does
// not tell.
func PhysicalBytes() uint64 { return 0 }
