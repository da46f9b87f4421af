//go:build race

package engine_test

// raceEnabled builds the tested binary with the race detector too.
const raceEnabled = true
