package tenantdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

func send(t *testing.T, db *tenantdb.DB, id, key string) bool {
	t.Helper()
	tx := begin(t, db, tenantdb.Guard{})
	stored, err := tx.Send(t.Context(), tenantdb.Event{ID: id, Key: key, Type: "t", Target: "api", Data: json.RawMessage(`{"a":"ü\""}`), Token: 7, Hops: 1})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, tx)
	return stored
}

func claimEvents(t *testing.T, db *tenantdb.DB, name string, lease time.Duration) []tenantdb.Claimed {
	t.Helper()
	for {
		events, wait, err := db.ClaimEvents(t.Context(), tenantdb.EventsClaim{Name: name, Lease: lease, Max: 100})
		if err != nil {
			t.Fatal(err)
		}
		if wait <= 0 || wait > time.Second {
			return events
		}
		time.Sleep(wait) // one that is retried by hand is due in a moment, by the database's clock
	}
}

func ids(events []tenantdb.Claimed) string {
	var list []string
	for _, e := range events {
		list = append(list, e.ID)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func ok(t *testing.T, what string, done bool, err error) {
	t.Helper()
	if err != nil || !done {
		t.Fatalf("%s: %v, %v", what, done, err)
	}
}

func TestOutboxStoresWithTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{Key: "k", Token: 1, Owner: "me"})
		if stored, err := tx.Send(t.Context(), tenantdb.Event{ID: "undone", Target: "api"}); err != nil || !stored {
			t.Fatalf("%v, %v", stored, err)
		}
		tx.Rollback(t.Context())
		if _, wait, err := db.ClaimEvents(t.Context(), tenantdb.EventsClaim{Name: "c", Lease: time.Minute, Max: 1}); err != nil || wait >= 0 {
			t.Errorf("after a rollback: %v, %v", wait, err)
		}
		if !send(t, db, "e", "k") || send(t, db, "e", "k") {
			t.Error("a repeated EventId is stored twice, or the first not at all")
		}
		got := claimEvents(t, db, "c", time.Minute)
		if len(got) != 1 || got[0].ID != "e" || string(got[0].Data) != `{"a":"ü\""}` || got[0].Token != 7 || got[0].Hops != 1 ||
			got[0].Attempts != 1 || time.Since(got[0].CreatedAt).Abs() > time.Minute {
			t.Errorf("claimed %+v", got)
		}
		done, err := db.Delivered(t.Context(), got[0].Row, "c")
		ok(t, "delivered", done, err)
		if send(t, db, "e", "") {
			t.Error("the EventId of a delivered event is stored again")
		}
	})
}

func TestOutboxRefusesWhatItCannotKeep(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		tx := begin(t, db, tenantdb.Guard{})
		for name, e := range map[string]tenantdb.Event{
			"no id": {Target: "a"}, "long id": {ID: strings.Repeat("x", 256), Target: "a"}, "NUL": {ID: "a\x00", Target: "a"},
			"no target": {ID: "a"}, "long key": {ID: "a", Target: "a", Key: strings.Repeat("x", 256)},
			"large data": {ID: "a", Target: "a", Data: make([]byte, tenantdb.MaxEventData+1)},
		} {
			_, err := tx.Send(t.Context(), e)
			wantKind(t, name, err, fault.ScriptError)
		}
		if stored, err := tx.Send(t.Context(), tenantdb.Event{ID: "a", Target: "a"}); err != nil || !stored {
			t.Errorf("the transaction is unusable after refusals: %v, %v", stored, err)
		}
	})
}

// A claimed event is nobody else's until its lease ends; then the first claim counts no more.
func TestClaims(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		send(t, db, "e", "")
		first := claimEvents(t, db, "one", 50*time.Millisecond)
		row := first[0].Row
		kept, err := db.ExtendClaim(t.Context(), row, "one", 50*time.Millisecond)
		ok(t, "extended", kept, err)
		var again []tenantdb.Claimed
		for len(again) == 0 { // the database's own wait says when to look again
			events, wait, err := db.ClaimEvents(t.Context(), tenantdb.EventsClaim{Name: "two", Lease: time.Minute, Max: 1})
			if err != nil || wait > 50*time.Millisecond {
				t.Fatalf("wait %v, %v", wait, err)
			}
			again = events
			<-time.After(max(0, wait))
		}
		if again[0].Row != row || again[0].Attempts != 2 {
			t.Errorf("claimed %+v", again)
		}
		for name, mark := range map[string]func() (bool, error){
			"extend":    func() (bool, error) { return db.ExtendClaim(t.Context(), row, "one", time.Hour) },
			"delivered": func() (bool, error) { return db.Delivered(t.Context(), row, "one") },
			"failed":    func() (bool, error) { return db.Failed(t.Context(), row, "one", time.Hour, "x") },
			"dead":      func() (bool, error) { return db.Dead(t.Context(), row, "one", "x") },
			"give back": func() (bool, error) { return db.GiveBack(t.Context(), row, "one") },
		} {
			if done, err := mark(); done || err != nil {
				t.Errorf("%s by a claim that has ended: %v, %v", name, done, err)
			}
		}
		back, err := db.GiveBack(t.Context(), row, "two")
		ok(t, "given back", back, err)
		if third := claimEvents(t, db, "three", time.Minute); len(third) != 1 || third[0].Attempts != 2 {
			t.Errorf("after giving back: %+v", third)
		}
	})
}

func TestOrderOfAKey(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		for _, e := range []string{"a1 a", "b1 b", "a2 a", "x ", "y ", "a3 a", "b2 b"} {
			id, key, _ := strings.Cut(e, " ")
			send(t, db, id, key)
		}
		first := claimEvents(t, db, "1", time.Minute)
		if ids(first) != "a1 b1 x y" {
			t.Fatalf("first %s", ids(first))
		}
		if more := claimEvents(t, db, "2", time.Minute); len(more) > 0 {
			t.Fatalf("while the first of each key are under way: %s", ids(more))
		}
		for _, e := range first {
			var done bool
			var err error
			switch e.ID {
			case "a1": // fails: a2 waits behind it
				done, err = db.Failed(t.Context(), e.Row, "1", time.Hour, "no\x00 answer")
			case "b1": // a dead letter no longer holds up its key
				done, err = db.Dead(t.Context(), e.Row, "1", "given up")
			default:
				done, err = db.Delivered(t.Context(), e.Row, "1")
			}
			ok(t, e.ID, done, err)
		}
		next := claimEvents(t, db, "3", time.Minute)
		if ids(next) != "b2" || !next[0].Gap || first[0].Gap {
			t.Fatalf("then %+v", next)
		}
		if err := db.RetryEvent(t.Context(), first[1].Row); err != nil { // b1
			t.Fatal(err)
		}
		if b1 := claimEvents(t, db, "3", time.Minute); len(b1) > 0 {
			t.Errorf("beside a later one of its key: %s", ids(b1))
		}
		again, err := db.Failed(t.Context(), next[0].Row, "3", 0, "not past the gap")
		ok(t, "b2 refused", again, err)
		if b1 := claimEvents(t, db, "3", time.Minute); ids(b1) != "b1" || b1[0].Gap {
			t.Errorf("retried by hand, before the later one: %+v", b1)
		}
		list, err := db.Events(t.Context(), tenantdb.EventFilter{Key: "a", Max: 10})
		if err != nil || len(list) != 3 || list[2].ID != "a1" || list[2].Error != "no  answer" || list[2].State != "pending" || list[2].Claimed {
			t.Fatalf("%+v, %v", list, err)
		}
		if err := db.RetryEvent(t.Context(), list[2].Row); err != nil {
			t.Fatal(err)
		}
		if next := claimEvents(t, db, "4", time.Minute); ids(next) != "a1" || next[0].Attempts != 1 {
			t.Errorf("retried by hand: %+v", next)
		}
	})
}

func TestDeadLetters(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		send(t, db, "e", "k")
		e := claimEvents(t, db, "1", time.Minute)[0]
		wantKind(t, "retry of one under way", db.RetryEvent(t.Context(), e.Row), fault.VersionConflict)
		done, err := db.Dead(t.Context(), e.Row, "1", "enough")
		ok(t, "dead", done, err)
		if err := db.RetryEvent(t.Context(), e.Row); err != nil {
			t.Fatal(err)
		}
		if again := claimEvents(t, db, "2", time.Minute); ids(again) != "e" {
			t.Fatalf("after the retry: %s", ids(again))
		}
		if err := db.DropEvent(t.Context(), e.Row); err != nil {
			t.Fatal(err)
		}
		if done, err := db.Delivered(t.Context(), e.Row, "2"); done || err != nil {
			t.Errorf("a dropped event is marked: %v, %v", done, err)
		}
		wantKind(t, "dropped twice", db.DropEvent(t.Context(), e.Row), fault.VersionConflict)
		wantKind(t, "retry of none", db.RetryEvent(t.Context(), e.Row+100), fault.NotFound)
		wantKind(t, "drop of none", db.DropEvent(t.Context(), e.Row+100), fault.NotFound)
		list, err := db.Events(t.Context(), tenantdb.EventFilter{State: "dropped", Max: 10})
		if err != nil || len(list) != 1 || list[0].EndedAt.IsZero() || string(list[0].Data) != `{"a":"ü\""}` {
			t.Errorf("%+v, %v", list, err)
		}
		if none, err := db.Events(t.Context(), tenantdb.EventFilter{Before: e.Row, Max: 10}); err != nil || len(none) > 0 {
			t.Errorf("before the first: %+v, %v", none, err)
		}
	})
}

// A dead letter without a reason of its own keeps that of the last try that had one.
func TestWhyALetterIsDead(t *testing.T) {
	for name, c := range map[string]struct{ said, why, want string }{
		"its own reason":      {"status 302", "enough", "enough"},
		"the last one's":      {"status 302", "", "status 302"},
		"nobody said a thing": {"", "", "the node ended during every try"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, db *tenantdb.DB) {
				send(t, db, "e", "k")
				e := claimEvents(t, db, "1", time.Minute)[0]
				done, err := db.Failed(t.Context(), e.Row, "1", 0, c.said)
				ok(t, "failed", done, err)
				e = claimEvents(t, db, "2", time.Minute)[0]
				done, err = db.Dead(t.Context(), e.Row, "2", c.why)
				ok(t, "dead", done, err)
				list, err := db.Events(t.Context(), tenantdb.EventFilter{State: "dead", Max: 10})
				if err != nil || len(list) != 1 || list[0].Error != c.want {
					t.Errorf("%+v, %v", list, err)
				}
			})
		})
	}
}

func TestInbox(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		once := func(tx *tenantdb.Tx) bool {
			t.Helper()
			first, err := tx.Once(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			return first
		}
		tx := begin(t, db, tenantdb.Guard{})
		if !once(tx) || once(tx) {
			t.Error("the first time is not the only one")
		}
		tx.Rollback(t.Context())
		tx = begin(t, db, tenantdb.Guard{})
		if !once(tx) {
			t.Error("a run that was rolled back counts")
		}
		commit(t, tx)
		if tx = begin(t, db, tenantdb.Guard{}); once(tx) {
			t.Error("the second run is the first again")
		}
		_, err := tx.Once(t.Context(), "")
		wantKind(t, "no id", err, fault.ScriptError)
	})
}

func TestSweepKeepsWhatIsNotOver(t *testing.T) {
	each(t, func(t *testing.T, db *tenantdb.DB) {
		for _, id := range []string{"sent", "dead", "pending"} {
			send(t, db, id, "")
		}
		for _, e := range claimEvents(t, db, "c", time.Minute) {
			switch e.ID {
			case "sent":
				done, err := db.Delivered(t.Context(), e.Row, "c")
				ok(t, e.ID, done, err)
			case "dead":
				done, err := db.Dead(t.Context(), e.Row, "c", "x")
				ok(t, e.ID, done, err)
			}
		}
		for _, c := range []struct {
			keep time.Duration
			left int
		}{{time.Hour, 3}, {-time.Second, 2}} {
			if more, err := db.Sweep(t.Context(), c.keep, c.keep); err != nil || more {
				t.Fatalf("%v, %v", more, err)
			}
			if list, err := db.Events(t.Context(), tenantdb.EventFilter{Max: 10}); err != nil || len(list) != c.left {
				t.Errorf("kept %v: %d left, %v", c.keep, len(list), err)
			}
		}
	})
}

// Several relays on one database, each with its own connections: every event is delivered
// by one of them, those of a key in the order of their commits and never two at once.
func TestRelaysShareAnOutbox(t *testing.T) {
	db := openPostgres(t, newPool(t, testserver.Postgres(t).URL("postgres")))
	const keys, each, relays = 5, 20, 4
	var senders, takers sync.WaitGroup
	for k := range keys {
		senders.Go(func() {
			for i := range each {
				send(t, db, fmt.Sprintf("%d-%02d", k, i), fmt.Sprint(k))
			}
		})
	}
	var mu sync.Mutex
	order, busy := map[string][]string{}, map[string]bool{}
	left := keys * each
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r := range relays {
		takers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("%d/%d", r, n)
				events, _, err := db.ClaimEvents(ctx, tenantdb.EventsClaim{Name: name, Lease: time.Minute, Max: 3})
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				for _, e := range events {
					mu.Lock()
					if busy[e.Key] {
						t.Errorf("two events of key %s are under way", e.Key)
					}
					busy[e.Key] = true
					order[e.Key] = append(order[e.Key], e.ID)
					mu.Unlock()
				}
				for _, e := range events {
					mu.Lock()
					busy[e.Key] = false
					left--
					last := left == 0
					mu.Unlock()
					if done, err := db.Delivered(context.WithoutCancel(ctx), e.Row, name); err != nil || !done {
						t.Errorf("%s: %v, %v", e.ID, done, err)
					}
					if last {
						cancel()
					}
				}
			}
		})
	}
	senders.Wait()
	takers.Wait()
	for k, got := range order {
		if len(got) != each || !slices.IsSorted(got) {
			t.Errorf("key %s: %v", k, got)
		}
	}
	if left != 0 {
		t.Errorf("%d events were not delivered", left)
	}
}
