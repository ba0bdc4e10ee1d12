// Package wording phrases what messages of several packages say: lists of
// names, counts, sizes, and the name that was probably meant.
package wording

import (
	"fmt"
	"strings"
)

// List joins the first most names and counts the rest.
func List(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Count is a number of things: "1 block", "2 blocks".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Bytes is a size in MB or GB, powers of 1000.
func Bytes(n uint64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
