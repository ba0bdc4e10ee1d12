package runlog

import "golang.org/x/sys/unix"

// PhysicalBytes returns the memory of this machine, 0 where the system does
// not tell.
func PhysicalBytes() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
