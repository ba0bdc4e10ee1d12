//go:build !cgo || !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "openblas: this comparison needs Linux and cgo")
	os.Exit(1)
}
