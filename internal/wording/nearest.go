package wording

import "strings"

// Nearest returns the candidate most like name, or "" when none is near: at
// most a third of name's letters differ, and one letter may always differ.
// Case counts only between equals. Failing that, it returns the only candidate
// that begins with name.
func Nearest(name string, candidates []string) string {
	best, bestCost := "", max(1, len(name)/3)*2+1
	for _, c := range candidates {
		cost := 2 * Distance(strings.ToLower(name), strings.ToLower(c))
		if !strings.EqualFold(name, c) || name[0] != c[0] {
			cost++
		}
		if cost < bestCost || cost == bestCost && best == "" {
			best, bestCost = c, cost
		}
	}
	if best == "" && name != "" {
		for _, c := range candidates {
			if strings.HasPrefix(strings.ToLower(c), strings.ToLower(name)) {
				if best != "" {
					return ""
				}
				best = c
			}
		}
	}
	return best
}

// Distance counts insertions, deletions, replacements and swaps of neighbours
// of bytes that turn a into b (optimal string alignment).
func Distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
