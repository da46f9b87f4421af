//go:build !race

package jsbridge

const raceEnabled = false
