package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Lock is one held lock.
type Lock struct {
	Lock      string
	Token     int64
	Node      string
	Api       string
	Execution string
	Since     time.Time
	LeftMs    int64
	Waiting   []LockWaiting
}

// LockWaiting is a node that waits; Count is 0 where only that node knows how many.
type LockWaiting struct {
	Node  string
	Since time.Time
	ForMs int64
	Count int `json:",omitempty"`
}

func (w LockWaiting) String() string {
	s := fmt.Sprintf("%s for %v", w.Node, inMillis(w.ForMs))
	if w.Count > 1 {
		s = fmt.Sprintf("%d on %s", w.Count, s)
	}
	return s
}

// Locks is a list of held locks.
type Locks []Lock

func (l Locks) String() string {
	if len(l) == 0 {
		return "no lock is held\n"
	}
	return table("LOCK\tTOKEN\tNODE\tAPI\tEXECUTION\tSINCE\tLEFT\tWAITING", len(l), func(i int) []any {
		k := l[i]
		waiting := make([]string, len(k.Waiting))
		for j, w := range k.Waiting {
			waiting[j] = w.String()
		}
		return []any{k.Lock, k.Token, k.Node, k.Api, k.Execution, k.Since.UTC().Format("2006-01-02 15:04:05Z"),
			inMillis(k.LeftMs), strings.Join(waiting, ", ")}
	})
}

func inMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// Locks lists the held locks that the client may see and whose names, after the tenant where
// the client names one, begin with prefix.
func (c *Client) Locks(ctx context.Context, prefix string) (Locks, error) {
	all := Locks{}
	for cursor := ""; ; {
		var page struct {
			Items      Locks
			NextCursor string
		}
		query := url.Values{"limit": {"1000"}, "prefix": {prefix}, "cursor": {cursor}}
		if err := c.call(ctx, request{method: http.MethodGet, path: "/locks?" + query.Encode()}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// LockRelease is a forced release; Token says which holder is meant.
type LockRelease struct {
	Lock   string
	Token  int64
	Reason string `json:",omitempty"`
}

// ReleaseLock takes a lock away from its holder.
func (c *Client) ReleaseLock(ctx context.Context, r LockRelease) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/locks/release", body: r}, nil)
}
