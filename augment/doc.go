// Package augment turns ARC tasks into the arrays a reasoner is trained on:
// dihedral transforms, colour permutations and translations, each with its
// inverse; a dataset builder whose output is, byte for byte, that of the
// reference HRM builder for the same seed; and the reader of such datasets.
//
// Words: a *task* gives one *group*; a group holds one *puzzle* for the task
// as it is and one for each augmented copy; a puzzle holds *examples*, one per
// pair; every puzzle has an *identifier*, the row of its learned embedding.
// The train split holds the demonstrations (and the test pairs of tasks that
// are not held out), the test split the held-out test pairs.
package augment
