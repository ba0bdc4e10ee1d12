//go:build !unix

package files

import (
	"errors"
	"os"
)

// duplicate is for systems on which open files have names.
func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
