package augment

import (
	"deeploop/arc"
	"deeploop/internal/rng"
)

// Copies draws up to n different augmentations of a task with these pairs, none
// of them the task as it is, as Build draws those of the first task: a
// symmetric task has fewer. An empty output counts as one.
func Copies(pairs []arc.Pair, n int, seed uint32) []Augmentation {
	return drawCopies(rng.NewLegacy(seed), newOrbit(pairs), n, nil)
}
