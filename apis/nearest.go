package apis

import "strings"

// nearest returns the name that a misspelt word most likely meant, or "".
func nearest(word string, names []string) string {
	best, limit := "", max(1, len(word)/3)+1
	for _, n := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(n)); d < limit {
			best, limit = n, d
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost = 1 + min(above, row[j], row[j+1])
			}
			above, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
