// Package nearest finds the name that a misspelt one most likely meant.
package nearest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns the known name that differs least from word, letter case aside: at most half
// of the word's letters, and always two, may differ. Else it is the shortest one that word is
// a part of, if word has three letters or more, and "" where there is none.
func Name(word string, known []string) string {
	best := within(word, known, max(2, len(word)/2))
	if best != "" || len(word) < shortestPart {
		return best
	}
	for _, k := range known {
		if strings.Contains(strings.ToLower(k), strings.ToLower(word)) && (best == "" || len(k) < len(best)) {
			best = k
		}
	}
	return best
}

// Typo is Name where word may well be right: at most a quarter of its letters may differ.
func Typo(word string, known []string) string { return within(word, known, len(word)/4) }

// within is the first of the names that differ least, in at most so many letters.
func within(word string, known []string, limit int) string {
	if len(word) > longest {
		return ""
	}
	best := ""
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d <= limit {
			best, limit = k, d-1
		}
	}
	return best
}

// shortestPart is the length in bytes of a part that still says something.
const shortestPart = 3

// longest is the length in bytes of a word that is worth the comparing.
const longest = 64
