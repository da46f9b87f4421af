// Package nearest finds the name that a misspelt one most likely meant.
package nearest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns the known name that differs least from word, letter case aside, or "" when
// none is near: at most half of the word's letters, and always two, may differ.
func Name(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	best, limit := "", max(2, len(word)/2)+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < limit {
			best, limit = k, d
		}
	}
	return best
}

// longest is the length in bytes of a word that is worth the comparing.
const longest = 64
