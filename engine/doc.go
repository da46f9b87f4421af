// Package engine is the order of one call (contract.md section 3): find the API, may the
// caller, derive the budget, take the lock, check, run the script, check, commit, apply
// the staged effects, release. It reaches the database, the cache and the settings only
// through the small ports of ports.go.
package engine
