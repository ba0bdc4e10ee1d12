package augment

import (
	"deeploop/internal/rng"
)

// triesPerCopy bounds the draws for a task: at most this many per wanted copy.
const triesPerCopy = 5

// patience is the number of duplicates after which the orbit is counted.
const patience = 16

// drawCopies draws up to numAug different augmentations of a task, in the
// reference's order of draws: a transform, then a permutation of the colours 1
// to 9; duplicates of the task itself or of earlier copies are dropped.
//
// A symmetric task has fewer different copies than wanted. Once all of its
// orbit is found the remaining tries only consume their random numbers, which
// later tasks depend on.
func drawCopies(m *rng.Legacy, o *orbit, numAug int, dst []Augmentation) []Augmentation {
	if numAug == 0 {
		return dst
	}
	seen := make(map[fingerprint]struct{}, numAug+1)
	seen[o.fingerprint(Original())] = struct{}{}
	duplicates, all, exhausted := 0, 0, false
	for range triesPerCopy * numAug {
		a := drawAugmentation(m)
		if exhausted {
			continue
		}
		f := o.fingerprint(a)
		if _, dup := seen[f]; dup {
			if duplicates++; duplicates == patience {
				all = o.size(numAug + 1)
				exhausted = len(seen) == all
			}
			continue
		}
		seen[f] = struct{}{}
		dst = append(dst, a)
		if len(seen) == numAug+1 {
			break
		}
		exhausted = len(seen) == all
	}
	return dst
}

func drawAugmentation(m *rng.Legacy) Augmentation {
	a := Original()
	a.Dihedral = m.Intn(NumDihedral)
	m.ShuffleBytes(a.Colors[1:])
	return a
}
