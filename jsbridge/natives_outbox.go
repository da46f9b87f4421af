package jsbridge

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"apiengine/nearest"
)

// Outbox keeps messages that leave with the run's commit, and notes those that came in.
type Outbox interface {
	// Send stores an event in the run's transaction; false: its ID is there already.
	Send(ctx context.Context, e Event) (stored bool, err error)
	// Once notes an event as handled, in the run's transaction; false: it was before.
	Once(ctx context.Context, eventID string) (first bool, err error)
}

// Event is what V8.Outbox.Send is given.
type Event struct {
	EventID string `json:"EventId"`
	Type    string
	Key     string
	Target  string // an ApiEngineKey, or an address
	Data    json.RawMessage
}

var eventFields = []string{"EventId", "Type", "Key", "Target", "Data"}

func outboxFuncs() []Func {
	return []Func{
		hostFn("Outbox.Send", "stores a message that is delivered after the commit: {EventId, Type, Data, Target, Key}; false when the EventId was sent before",
			func(c *Call, in struct{ Event json.RawMessage }) (any, error) {
				if c.Env.Outbox == nil {
					return nil, errNoService("Outbox")
				}
				e, err := eventOf(in.Event)
				if err != nil {
					return nil, err
				}
				defer c.databaseTime(time.Now())
				return c.Env.Outbox.Send(c, e)
			}),
		hostFn("Inbox.Once", "true the first time that a committed run asks for this eventId, false after",
			func(c *Call, in struct {
				EventID string `js:"eventId"`
			}) (any, error) {
				if c.Env.Outbox == nil {
					return nil, errNoService("Inbox")
				}
				defer c.databaseTime(time.Now())
				return c.Env.Outbox.Once(c, in.EventID)
			}),
	}
}

func eventOf(text json.RawMessage) (Event, error) {
	var e Event
	fields, err := objectOf("Outbox.Send", text, eventFields)
	if err != nil {
		return e, err
	}
	e.Data = fields["Data"]
	for name, dst := range map[string]*string{"EventId": &e.EventID, "Type": &e.Type, "Key": &e.Key, "Target": &e.Target} {
		if err := optionText("Outbox.Send", name, fields[name], dst); err != nil {
			return e, err
		}
	}
	switch {
	case e.EventID == "":
		return e, argErrorf("V8.Outbox.Send: EventId is missing: the same one on every try makes the message go out once")
	case e.Target == "":
		return e, argErrorf("V8.Outbox.Send: Target is missing: an ApiEngineKey or an address")
	}
	return e, nil
}

// objectOf takes an options object apart; an unknown option fails by its name.
func objectOf(name string, text json.RawMessage, known []string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, argErrorf("V8.%s: the argument must be an object with %s", name, known[0])
	}
	for field := range fields {
		if !slices.Contains(known, field) {
			msg := "V8." + name + " has no option " + field
			if near := nearest.Name(field, known); near != "" {
				msg += "; did you mean " + near + "?"
			}
			return nil, argErrorf("%s", msg)
		}
	}
	return fields, nil
}

// optionText reads a string option, or a number that stands for one; nothing when it is missing.
func optionText(name, field string, text json.RawMessage, dst *string) error {
	switch {
	case len(text) == 0 || string(text) == "null":
		return nil
	case text[0] == '"':
		return json.Unmarshal(text, dst)
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		*dst = string(text)
		return nil
	}
	return argErrorf("V8.%s: %s must be a string", name, field)
}
