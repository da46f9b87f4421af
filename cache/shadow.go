package cache

import "time"

// shadow is what the staged operations on one key make of it, as far as that is known
// without asking the base.
type shadow struct {
	// known: a Set or a Remove came first, so the base's entry no longer matters.
	known  bool
	kind   shadowKind
	value  string             // shadowString
	ttl    time.Duration      // shadowString: how long it will live
	fields map[string]*string // shadowHash; nil: deleted. Over the base's fields unless known
}

type shadowKind int

const (
	shadowAbsent shadowKind = iota // known only: removed
	shadowString
	shadowHash
)

// decides tells whether what is staged has a say in what the key holds: an Expire has none.
func (s *shadow) decides() bool { return s != nil && (s.known || s.kind == shadowHash) }

// has reports whether the run has staged something for a field.
func (s *shadow) has(field string) bool { _, staged := s.fields[field]; return staged }

// fold changes the shadow as o will change the base. o fits what the key holds: that was
// checked when it was staged.
func (s *shadow) fold(o op) {
	switch o.kind {
	case opSet, opSetFenced:
		*s = shadow{known: true, kind: shadowString, value: o.value, ttl: o.ttl}
	case opExpire:
		s.ttl = o.ttl
	case opRemove:
		*s = shadow{known: true, kind: shadowAbsent}
	case opHashSet:
		s.setField(o.field, &o.value)
	case opHashDelete:
		s.setField(o.field, nil)
	}
}

func (s *shadow) setField(field string, value *string) {
	if s.kind != shadowHash {
		s.kind, s.fields = shadowHash, map[string]*string{}
	}
	if s.known && value == nil {
		delete(s.fields, field)
		if len(s.fields) == 0 {
			s.kind = shadowAbsent
		}
		return
	}
	s.fields[field] = value
}

// over lays the shadow of a hash over the base's fields, which it may change.
func (s *shadow) over(base map[string]string) map[string]string {
	for field, value := range s.fields {
		if value == nil {
			delete(base, field)
		} else {
			base[field] = *value
		}
	}
	return base
}
