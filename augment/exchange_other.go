//go:build !linux

package augment

import "errors"

// exchange is not available here.
func exchange(_, _ string) error { return errors.ErrUnsupported }
