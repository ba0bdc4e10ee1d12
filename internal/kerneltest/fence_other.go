//go:build !unix

package kerneltest

// fenced returns n bytes; there is no fence here.
func fenced(n int) ([]byte, func()) { return make([]byte, n, n+8), func() {} }
