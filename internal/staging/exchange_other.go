//go:build !linux

package staging

import "errors"

// exchange is not available here.
func exchange(_, _ string) error { return errors.ErrUnsupported }
