package solve

import (
	"math/rand/v2"

	"deeploop/arc"
	"deeploop/augment"
)

// Treatment is what a row's draw does to colours. Colour 0 always stays.
type Treatment string

// Treatments. None shuffles a colour that some output has and its input lacks:
// nobody could tell what became of it.
const (
	// Keep leaves colours as they are, for rules that name colours.
	Keep Treatment = "keep"
	// Free shuffles the colours that some demonstration lacks among each other:
	// they can hardly have a meaning of their own.
	Free Treatment = "free"
	// Any shuffles all colours, for rules that name none.
	Any Treatment = "any"
	// Copied is that of Settings.Copies, whose colours are permuted once.
	Copied Treatment = "copies"
)

// View is what a task identifier stands for: rows under it show the task after
// Fixed, then with the colours Shuffled permuted anew for each row.
type View struct {
	Treatment Treatment
	Fixed     augment.Augmentation
	Shuffled  []uint8 // colours, as they are before Fixed; nil: none
}

// views lists what the identifiers 1, 2, ... of the problem stand for. Each is
// different: a treatment that shuffles nothing the task shows is left out.
func (p *Problem) views(s Settings) []View {
	turns := []int{0}
	if s.Turns {
		turns = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	var all []View
	var seen [][]uint8
	for _, c := range s.Colors {
		shuffled := p.shuffled(Treatment(c))
		if contains(seen, shuffled) {
			continue
		}
		seen = append(seen, shuffled)
		for _, t := range turns {
			all = append(all, View{Treatment(c), augment.Augmentation{Dihedral: t, Colors: augment.IdentityColors()}, shuffled})
		}
	}
	if s.Copies > 0 {
		pairs := append([]arc.Pair(nil), p.Demos...)
		for _, g := range p.Tests {
			pairs = append(pairs, arc.Pair{Input: g})
		}
		copies := augment.Copies(pairs, s.Copies, uint32(s.Train.Seed))
		if len(all) == 0 {
			all = append(all, View{Treatment: Copied, Fixed: augment.Original()})
		}
		for _, a := range copies {
			all = append(all, View{Treatment: Copied, Fixed: a})
		}
	}
	return all
}

func contains(sets [][]uint8, set []uint8) bool {
	for _, s := range sets {
		if string(s) == string(set) {
			return true
		}
	}
	return false
}

// shuffled lists the colours of a treatment, nil where permuting them would
// change nothing of the task.
func (p *Problem) shuffled(t Treatment) []uint8 {
	var set []uint8
	shows := false
	for c := uint8(1); c < arc.NumColors; c++ {
		if !p.named[c] && (t == Any || t == Free && !p.fixed[c]) {
			set = append(set, c)
			shows = shows || p.used[c]
		}
	}
	if !shows || len(set) < 2 {
		return nil
	}
	return set
}

// draw returns the augmentation of one row.
func (v View) draw(r *rand.Rand) augment.Augmentation {
	a := v.Fixed
	to := append([]uint8(nil), v.Shuffled...)
	r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	for i, c := range v.Shuffled {
		a.Colors[c] = v.Fixed.Colors[to[i]]
	}
	return a
}
