//go:build !asan

package kernel

import "unsafe"

// aligned returns bytes zeros aligned to Align.
func aligned(bytes int) unsafe.Pointer {
	raw := make([]byte, bytes+Align)
	p := unsafe.Pointer(&raw[0])
	return unsafe.Add(p, (Align-int(uintptr(p)%Align))%Align)
}
