// Package rng holds the random streams of the product, each of which a
// checkpoint can save and restore bit for bit: numpy's legacy generator
// (RandomState, an MT19937) and numpy's Generator over Philox4x64, as far as
// the reference code draws from them.
package rng
