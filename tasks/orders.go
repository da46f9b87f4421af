package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/store/tenantdb"
)

// Order is the wish for a task.
type Order struct {
	ApiEngineKey   string
	Param          json.RawMessage // an object; empty: {}
	IdempotencyKey string          // the same key and order is the same task; at most 255 bytes
	ConcurrencyKey string          // of the tasks of one key one runs at a time; at most 255 bytes
	Delay          float64         // seconds before it may run
	RunAt          *time.Time      // not before
	Priority       int             // 1 to 4, 1 is the most urgent; default 2
	MaxAttempts    int             // tries of a slice, 1 to 1000; default by the settings
}

// SourceAPI is the Source of a task that somebody asked for over HTTP.
const SourceAPI = "api"

// principal is who a task runs as, as its row keeps it.
type principal engine.Caller

func bad(format string, args ...any) error { return fault.New(fault.BadRequest, format, args...) }

// wrong is a bad_request about one field.
func wrong(field, format string, args ...any) error {
	e := fault.New(fault.BadRequest, field+" "+format, args...)
	e.Fields = map[string]any{"Field": field}
	return e
}

// fill gives the defaults and refuses what cannot be kept.
func (o *Order) fill(maxAttempts int) error {
	if len(o.Param) == 0 || string(o.Param) == "null" {
		o.Param = json.RawMessage("{}")
	}
	if o.Priority == 0 {
		o.Priority = 2
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = maxAttempts
	}
	switch {
	case o.ApiEngineKey == "":
		return wrong("ApiEngineKey", "is missing: the API that the task runs")
	case strings.TrimLeft(string(o.Param), " \t\r\n")[0] != '{':
		return wrong("Param", "must be an object")
	case len(o.Param) > maxParam:
		return wrong("Param", "has %d bytes, at most %d are kept", len(o.Param), maxParam)
	case unfit(o.IdempotencyKey):
		return wrong("IdempotencyKey", "has at most 255 bytes, and no NUL")
	case unfit(o.ConcurrencyKey):
		return wrong("ConcurrencyKey", "has at most 255 bytes, and no NUL")
	case o.Delay < 0 || o.Delay > maxWait.Seconds():
		return wrong("Delay", "must be from 0 to %d seconds, not %v", int(maxWait.Seconds()), o.Delay)
	case o.RunAt != nil && (time.Until(*o.RunAt) > maxWait || o.RunAt.Year() < 1970):
		return wrong("RunAt", "must be at most %d days from now", int(maxWait.Hours()/24))
	case o.RunAt != nil && o.Delay > 0:
		return wrong("RunAt", "and Delay are two words for one thing: leave one out")
	case o.Priority < 1 || o.Priority > 4:
		return wrong("Priority", "must be from 1 (urgent) to 4, not %d", o.Priority)
	case o.MaxAttempts < 1 || o.MaxAttempts > 1000:
		return wrong("MaxAttempts", "must be from 1 to 1000, not %d", o.MaxAttempts)
	}
	return nil
}

func unfit(key string) bool { return len(key) > 255 || strings.Contains(key, "\x00") }

// maxWait is how far ahead a task can be ordered.
const maxWait = 10 * 365 * 24 * time.Hour

// row makes the order a task. source: see Task.Source.
func (r *Runner) row(tenant string, c engine.Caller, source string, o Order) (tenantdb.NewTask, error) {
	if err := o.fill(r.cfg.MaxAttempts); err != nil {
		return tenantdb.NewTask{}, err
	}
	d, found := r.cfg.Calls.Describe(tenant, o.ApiEngineKey, "")
	switch {
	case !found:
		return tenantdb.NewTask{}, fault.New(fault.NotFound, "there is no API %q", o.ApiEngineKey)
	case d.Library:
		return tenantdb.NewTask{}, wrong("ApiEngineKey", "names a library, %q: nobody calls it", d.ApiEngineKey)
	case !d.Enabled():
		return tenantdb.NewTask{}, fault.New(fault.Disabled, "the API %q is switched off", d.ApiEngineKey)
	case source == SourceAPI:
		if err := r.cfg.Calls.MayCall(c, &d); err != nil {
			return tenantdb.NewTask{}, err
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return tenantdb.NewTask{}, err
	}
	who, err := json.Marshal(principal(c))
	if err != nil {
		return tenantdb.NewTask{}, err
	}
	n := tenantdb.NewTask{ID: id.String(), API: d.ApiEngineKey, Param: o.Param, Principal: who, Owner: OwnerOf(c), Source: source, Key: o.ConcurrencyKey,
		Priority: o.Priority, MaxAttempts: o.MaxAttempts, Delay: time.Duration(o.Delay * float64(time.Second))}
	if o.RunAt != nil {
		n.At = *o.RunAt
	}
	if o.IdempotencyKey != "" {
		n.Idempotency = digest(strings.ToLower(d.ApiEngineKey), n.Owner, o.IdempotencyKey, scheduled(source))
	}
	n.Fingerprint = digest(strings.ToLower(d.ApiEngineKey), canonical(o.Param), o.ConcurrencyKey)
	return n, nil
}

// OwnerOf names a caller for TaskFilter.Owner; nobody is "". Two issuers may know the same ID.
func OwnerOf(c engine.Caller) string {
	if c.ID == "" {
		return ""
	}
	return digest(c.Issuer, c.ID)
}

// scheduled keeps the names that schedules give their wishes apart from everybody else's.
func scheduled(source string) string {
	if strings.HasPrefix(source, SourceSchedule) {
		return SourceSchedule
	}
	return ""
}

// digest is a hash of the parts that no other parts have.
func digest(parts ...string) string {
	text, _ := json.Marshal(parts) // strings always can be
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Submit keeps a task for somebody, and rings for it. A repeated IdempotencyKey gives the
// task that its first order has made, which is not New. Errors: bad_request, not_found, forbidden,
// idempotency_mismatch, store_unavailable.
func (r *Runner) Submit(ctx context.Context, tenant string, c engine.Caller, o Order) (Task, error) {
	return r.submit(ctx, tenant, c, SourceAPI, o)
}

func (r *Runner) submit(ctx context.Context, tenant string, c engine.Caller, source string, o Order) (Task, error) {
	n, err := r.row(tenant, c, source, o)
	if err != nil {
		return Task{}, err
	}
	if err := r.Expect(ctx, tenant); err != nil {
		return Task{}, err
	}
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return Task{}, err
	}
	id, created, err := db.AddTask(ctx, n)
	if err != nil {
		return Task{}, err
	}
	t, err := db.Task(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if t.Open() && t.State == tenantdb.TaskPending && t.Slice == 0 {
		r.ring(ctx, tenant, t)
	}
	out, err := r.showOne(ctx, tenant, t)
	out.New = created
	return out, err
}

// ring tells the nodes of a task; when it fails the watch will.
func (r *Runner) ring(ctx context.Context, tenant string, t tenantdb.Task) {
	err := r.cfg.Queue.Ring(ctx, Bell{Tenant: tenant, Task: t.ID, Priority: t.Priority, After: max(0, t.NextAt.Sub(t.Now))})
	if err != nil {
		r.cfg.Log.Warn("a task has to wait for the watch", "tenant", tenant, "task", t.ID, "error", err)
	}
}

// Get returns a task with the lines of its log that are younger than after. A task of another
// tenant is as little there as none: not_found.
func (r *Runner) Get(ctx context.Context, tenant, id string, after time.Time) (Task, error) {
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return Task{}, err
	}
	t, err := db.Task(ctx, id)
	if err != nil {
		return Task{}, err
	}
	lines, err := db.TaskLog(ctx, id, after)
	if err != nil {
		return Task{}, err
	}
	lines = append(lines, r.live.unkeptOf(t)...)
	out, err := r.showOne(ctx, tenant, t)
	if err != nil {
		return Task{}, err
	}
	for _, l := range lines {
		if l.At.After(after) {
			out.Log = append(out.Log, Line(l))
		}
	}
	if t.Open() && t.State == tenantdb.TaskPending && t.Key != "" && !t.Holds {
		if holder, found, err := db.HolderOfKey(ctx, t); err == nil && found {
			out.Why = "waits for the task " + holder.ID + " of the same ConcurrencyKey, which is " + strings.ToLower(statuses[holder.State])
		}
	}
	return out, nil
}

// List returns tasks, newest first, without their logs.
func (r *Runner) List(ctx context.Context, tenant string, f tenantdb.TaskFilter) ([]Task, error) {
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	list, err := db.Tasks(ctx, f)
	if err != nil {
		return nil, err
	}
	return r.show(ctx, tenant, list...)
}

// cancelTime bounds the wait for the database when a task is canceled.
const cancelTime = 10 * time.Second

// Cancel ends a task: at once when no slice runs, else as soon as the slice has been ended,
// on whatever node, whose work is rolled back. Errors: not_found, version_conflict when the
// task is over.
func (r *Runner) Cancel(ctx context.Context, tenant, id string) (Task, error) {
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return Task{}, err
	}
	if _, err := db.Task(ctx, id); err != nil {
		return Task{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	r.live.end(tenant, id, errCanceled) // before the mark: on SQLite the slice may have the writer
	t, err := db.CancelTask(ctx, id)
	if fault.Of(err) == fault.VersionConflict && t.State == tenantdb.TaskCanceled {
		return r.showOne(ctx, tenant, t) // by the slice that was just ended
	}
	if err != nil {
		return Task{}, err
	}
	r.live.end(tenant, id, errCanceled) // one that has begun meanwhile
	if !t.Open() {
		r.next(ctx, db, tenant, t.Key)
	}
	return r.showOne(ctx, tenant, t)
}

// Retry makes a task that failed, is dead or was canceled due again, its attempts counted
// anew, behind the slices that it has committed. Errors: not_found, version_conflict.
func (r *Runner) Retry(ctx context.Context, tenant, id string) (Task, error) {
	if err := r.Expect(ctx, tenant); err != nil {
		return Task{}, err
	}
	db, err := r.cfg.Databases.Tenant(ctx, tenant)
	if err != nil {
		return Task{}, err
	}
	t, err := db.RetryTask(ctx, id)
	if err != nil {
		return Task{}, err
	}
	r.ring(ctx, tenant, t)
	return r.showOne(ctx, tenant, t)
}
