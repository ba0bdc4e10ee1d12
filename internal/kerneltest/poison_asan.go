//go:build asan && cgo

package kerneltest

// #include <sanitizer/asan_interface.h>
import "C"

import "unsafe"

// guardBytes lie on either side of a buffer: more than a few rows of the
// widest vectors.
const guardBytes = 1024

// poison makes the address sanitizer end the process at a read or write of b.
// In front of a buffer it may spare the 7 bytes nearest to it.
func poison(b []byte) {
	C.__asan_poison_memory_region(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)))
}

func unpoison(b []byte) {
	C.__asan_unpoison_memory_region(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)))
}
