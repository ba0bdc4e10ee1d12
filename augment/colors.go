package augment

import (
	"fmt"
	"strings"

	"deeploop/arc"
)

// Colors is a permutation of the ten colours: Colors[i] is the new colour of
// old colour i. The builder keeps colour 0 fixed.
type Colors [arc.NumColors]uint8

// IdentityColors changes nothing.
func IdentityColors() Colors { return Colors{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} }

// Apply returns a recoloured copy of g.
func (c Colors) Apply(g arc.Grid) arc.Grid {
	out := arc.NewGrid(g.Rows, g.Cols)
	for i, v := range g.Cells {
		out.Cells[i] = c[v]
	}
	return out
}

// Inverse returns the permutation that undoes c.
func (c Colors) Inverse() Colors {
	var inv Colors
	for old, v := range c {
		inv[v] = uint8(old)
	}
	return inv
}

// String is the ten digits, as in identifier names.
func (c Colors) String() string {
	var b [arc.NumColors]byte
	for i, v := range c {
		b[i] = '0' + v
	}
	return string(b[:])
}

// ParseColors reads what String wrote: ten different digits.
func ParseColors(s string) (Colors, error) {
	var c Colors
	var seen [arc.NumColors]bool
	if len(s) == arc.NumColors {
		for i := range c {
			d := s[i] - '0'
			if d > 9 || seen[d] {
				return c, badColors(s)
			}
			c[i], seen[d] = d, true
		}
		return c, nil
	}
	return c, badColors(s)
}

func badColors(s string) error {
	return inputErrorf("read colour permutation: %q, expected the ten digits in some order", s)
}

// Augmentation is what was done to a task: colours first, then the dihedral
// transform (the two commute).
type Augmentation struct {
	Dihedral int
	Colors   Colors
}

// Original is the augmentation that changes nothing.
func Original() Augmentation { return Augmentation{Colors: IdentityColors()} }

// Apply augments a grid.
func (a Augmentation) Apply(g arc.Grid) arc.Grid { return Dihedral(a.Colors.Apply(g), a.Dihedral) }

// Undo takes an augmented grid back: Undo(Apply(g)) equals g.
func (a Augmentation) Undo(g arc.Grid) arc.Grid {
	return a.Colors.Inverse().Apply(Dihedral(g, InverseDihedral(a.Dihedral)))
}

// suffixLen is the length of "_t0_0123456789".
const suffixLen = 3 + 1 + arc.NumColors

// Suffix is what the reference adds to a task's name: "_t3_0614732958".
func (a Augmentation) Suffix() string { return fmt.Sprintf("_t%d_%s", a.Dihedral, a.Colors) }

// barSeparator is what TRM's builder writes in place of "_".
const barSeparator = "|||"

// ParseBarName is ParseName for names of TRM's builder: "TASK|||t3|||0614732958".
func ParseBarName(name string) (task string, a Augmentation) {
	parts := strings.Split(name, barSeparator)
	if n := len(parts); n > 2 {
		if a, ok := parseSuffix("_" + parts[n-2] + "_" + parts[n-1]); ok {
			return strings.Join(parts[:n-2], barSeparator), a
		}
	}
	return name, Original()
}

// parseSuffix reads a Suffix.
func parseSuffix(s string) (a Augmentation, ok bool) {
	if len(s) != suffixLen || s[:2] != "_t" || s[3] != '_' || s[2] < '0' || s[2] >= '0'+NumDihedral {
		return a, false
	}
	c, err := ParseColors(s[4:])
	return Augmentation{Dihedral: int(s[2] - '0'), Colors: c}, err == nil
}

// ParseName splits an identifier name of the reference into task and
// augmentation, taking the augmentation from the fixed-length end of the name,
// so that a task's own name may hold any character. A name without such an end
// is an unaugmented task. A task whose own name ends like an augmentation is
// taken for one; datasets of this package know their tasks and need no
// parsing (see TestPuzzles).
func ParseName(name string) (task string, a Augmentation) {
	if at := len(name) - suffixLen; at > 0 {
		if a, ok := parseSuffix(name[at:]); ok {
			return name[:at], a
		}
	}
	return name, Original()
}
