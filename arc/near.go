package arc

import (
	"sort"
	"strings"

	"deeploop/internal/wording"
)

// Near returns up to five ids that resemble id, most alike first: those a few
// typing slips away, and those that contain it or are contained in it.
func (c *Corpus) Near(id string) []string {
	type candidate struct {
		id       string
		distance int
	}
	var found []candidate
	seen := make(map[string]bool)
	want := strings.ToLower(id)
	for i := range c.Tasks {
		have := c.Tasks[i].ID
		if seen[have] || want == "" {
			continue
		}
		seen[have] = true
		low := strings.ToLower(have)
		d := wording.Distance(want, low)
		if d <= max(1, len(want)/3) {
			found = append(found, candidate{have, d})
		} else if len(want) >= 3 && (strings.Contains(low, want) || strings.Contains(want, low)) {
			found = append(found, candidate{have, len(want) + d})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].distance < found[j].distance })
	var ids []string
	for i := 0; i < len(found) && i < 5; i++ {
		ids = append(ids, found[i].id)
	}
	return ids
}
