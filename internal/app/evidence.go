package app

import (
	"encoding/json"

	"apiengine/engine"
	"apiengine/store/tenantdb"
)

// evidence is what is kept of a run whose outcome is unknown: what the database left, which
// database it is, and what else of the run is known.
type evidence struct {
	tenantdb.Witness
	Database string `json:",omitempty"` // of V8.Dbs; empty: the tenant's own
	Before   bool   `json:",omitempty"` // other transactions had been committed
	Rest     bool   `json:",omitempty"` // others were to follow and are rolled back
}

// evidenceOf returns u's evidence as text; what cannot be read tells nothing.
func evidenceOf(u engine.Unknown) json.RawMessage {
	w, _ := tenantdb.ReadEvidence(u.Evidence) // tenantdb wrote it
	text, err := json.Marshal(evidence{Witness: w, Database: u.Database, Before: u.Before, Rest: u.Rest})
	if err != nil { // plain fields always can be
		return u.Evidence
	}
	return text
}

// word is the outcome of the run, when that of the unknown commit is known.
func (e evidence) word(committed bool) string {
	switch {
	case committed && e.Rest, !committed && e.Before:
		return "partly_committed"
	case committed:
		return "committed"
	}
	return "rolled_back"
}
