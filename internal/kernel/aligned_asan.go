//go:build asan

package kernel

import "unsafe"

// aligned returns bytes zeros aligned to Align, for builds with the address
// sanitizer: with no byte to spare, so that what lies behind the last one is
// forbidden. It allocates until the address is right, which takes a few
// attempts for small sizes and one for large ones.
func aligned(bytes int) unsafe.Pointer {
	var wrong [][]byte // kept, or the next attempt would get the same address
	for {
		raw := make([]byte, bytes)
		if p := unsafe.Pointer(&raw[0]); uintptr(p)%Align == 0 {
			return p
		}
		wrong = append(wrong, raw)
	}
}
