package augment

// identifierMap numbers the puzzles. As in the reference a number belongs to a
// name, so tasks with the same id share the number of the unaugmented puzzle,
// and of copies augmented alike; number 0 is "<blank>".
type identifierMap struct {
	plan   *plan
	first  []int32          // per task: number of its first copy, or -1: look up
	byName map[string]int32 // names of tasks whose names may collide
	order  []copyOf         // number -> the copy that was named first
	shared [][2]int         // pairs of tasks that share a number, each once
}

// copyOf is copy k of a task.
type copyOf struct{ task, k int32 }

const blankName = "<blank>"

// newIdentifierMap walks the splits, groups and puzzles in order.
func newIdentifierMap(p *plan) *identifierMap {
	n := &identifierMap{plan: p, first: make([]int32, len(p.tasks)), byName: map[string]int32{}}
	n.order = make([]copyOf, 1, len(p.copies)+1)
	collides := n.collisions()
	numbered := make([]bool, len(p.tasks))
	pairSeen := map[[2]int]bool{}
	for _, s := range p.splits {
		for _, g := range s.groups {
			if numbered[g.task] {
				continue
			}
			numbered[g.task] = true
			t := &p.tasks[g.task]
			n.first[g.task] = int32(len(n.order))
			if collides[g.task] {
				n.first[g.task] = -1
			}
			for k := range t.count {
				c := copyOf{int32(g.task), int32(k)}
				if collides[g.task] {
					name := n.name(c)
					if old, ok := n.byName[name]; ok {
						pair := [2]int{int(n.order[old].task), g.task}
						if !pairSeen[pair] {
							pairSeen[pair] = true
							n.shared = append(n.shared, pair)
						}
						continue
					}
					n.byName[name] = int32(len(n.order))
				}
				n.order = append(n.order, c)
			}
		}
	}
	return n
}

// collisions marks the tasks whose names or augmented names may equal those of
// another task: the same id, also after taking off what looks like an
// augmentation.
func (n *identifierMap) collisions() []bool {
	stems := map[string]int{}
	stemOf := make([]string, len(n.plan.tasks))
	for i, t := range n.plan.tasks {
		stem := t.ID
		for {
			shorter, _ := ParseName(stem)
			if shorter == stem {
				break
			}
			stem = shorter
		}
		stemOf[i] = stem
		stems[stem]++
	}
	marks := make([]bool, len(stemOf))
	for i, stem := range stemOf {
		marks[i] = stems[stem] > 1
	}
	return marks
}

// count includes the blank identifier.
func (n *identifierMap) count() int { return len(n.order) }

// of returns the number of a task's k-th copy.
func (n *identifierMap) of(task, k int) int32 {
	if first := n.first[task]; first >= 0 {
		return first + int32(k)
	}
	return n.byName[n.name(copyOf{int32(task), int32(k)})]
}

// name returns the reference's name of a copy.
func (n *identifierMap) name(c copyOf) string {
	t := &n.plan.tasks[c.task]
	if c.k == 0 {
		return t.ID
	}
	return t.ID + n.plan.copies[t.first+int(c.k)].Suffix()
}
