//go:build unix

package kerneltest

import "syscall"

// fenced returns n bytes that end at a page which nobody may touch, and a
// function that gives them back.
func fenced(n int) ([]byte, func()) {
	page := syscall.Getpagesize()
	whole := (n + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		err = syscall.Mprotect(mem[whole:], syscall.PROT_NONE)
	}
	if err != nil {
		panic("kerneltest: fenced memory: " + err.Error())
	}
	return mem[whole-n : whole : whole], func() {
		if err := syscall.Munmap(mem); err != nil {
			panic("kerneltest: fenced memory: " + err.Error())
		}
	}
}
