//go:build !cgo

package pick

import (
	"errors"

	"deeploop/internal/kernel"
)

const noCgo = "this program was built without cgo (CGO_ENABLED=0, or no C compiler)"

func missing(name string) string {
	if name == "ref" {
		return ""
	}
	return noCgo
}

func open(string, int) (kernel.Backend, error) { return nil, errors.New(noCgo) }

func bf16Unit(string) string { return "" }
