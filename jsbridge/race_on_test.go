//go:build race

package jsbridge

const raceEnabled = true
