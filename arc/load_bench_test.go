package arc

import (
	"path/filepath"
	"testing"

	"deeploop/internal/goldentest"
)

// BenchmarkGoldenLoad reads the 800 files of ARC-AGI-1.
func BenchmarkGoldenLoad(b *testing.B) {
	dir := filepath.Join(goldentest.ARCData(b), "arc-agi-1")
	for b.Loop() {
		if _, err := Load(dir); err != nil {
			b.Fatal(err)
		}
	}
}
