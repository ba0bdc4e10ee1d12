//go:build !cgo

package lm

import (
	"testing"

	"deeploop/internal/kernel"
)

func simdBackends(testing.TB, int) map[string]kernel.Backend { return nil }
