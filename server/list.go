package server

import (
	"net/url"
	"strconv"
	"strings"

	"apiengine/fault"
)

// listed is a part of a list; NextCursor, if any, is the cursor of the next.
type listed[T any] struct {
	Items      []T
	NextCursor string `json:",omitempty"`
}

// page is the answer with at most limit of the items; one more shows that others follow.
func page[T any](found []T, limit int, cursor func(T) string) answer {
	out := listed[T]{Items: append([]T{}, found[:min(limit, len(found))]...)}
	if len(found) > limit {
		out.NextCursor = cursor(found[limit-1])
	}
	return answer{data: out}
}

// maxListed is the most items of one answer.
const maxListed = 1000

// limitOf reads ?limit=, 100 when it is absent.
func limitOf(query url.Values) (int, error) {
	text := strings.TrimSpace(query.Get("limit"))
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxListed {
		return 0, refuse(fault.BadRequest, "limit must be a whole number from 1 to %d, not %q", maxListed, text).with(map[string]any{"Field": "limit"})
	}
	return n, nil
}

// cursorOf reads the ?cursor= of a list that goes from high numbers to low; 0 when it is absent.
func cursorOf(query url.Values) (before int64, err error) {
	text := query.Get("cursor")
	if text == "" {
		return 0, nil
	}
	if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
		return 0, refuse(fault.BadRequest, "cursor must be the NextCursor of a page before").with(map[string]any{"Field": "cursor"})
	}
	return before, nil
}
