package apis

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robfig/cron/v3"

	"apiengine/budget"
)

var (
	keyForm     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
	lockKeyForm = regexp.MustCompile(`^[\pL\pN_$-]+(\.[\pL\pN_$-]+)*$`)
)

// Validate returns the definition in its normal form, with every default filled in. What
// is wrong comes as one *FieldError, or as FieldErrors when there are several.
func (d Definition) Validate() (Definition, error) {
	p := &problems{}
	d = d.normal()
	d.checkKey(p)
	d.checkTexts(p)
	d.checkWords(p)
	d = d.withDefaults()
	d.checkAddress(p)
	d.checkLists(p)
	d.checkLock(p)
	d.checkBudget(p)
	d.checkSchedule(p)
	d.checkLibrary(p)
	d.checkTestParam(p)
	d.checkCode(p)
	return d, p.err()
}

// normal writes what may be written in several ways in one, so that equal definitions
// have equal texts. It shares no slice with d.
func (d Definition) normal() Definition {
	d.ApiV8Code = newlines(strings.TrimPrefix(d.ApiV8Code, bom))
	d.ApiRemark = newlines(d.ApiRemark)
	names := strings.Split(d.LockKey, ",")
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
	}
	d.LockKey = strings.Join(names, ",")
	d.Methods = each(d.Methods, strings.ToUpper)
	d.Cors = each(d.Cors, strings.ToLower)
	d.ApiRole = each(d.ApiRole, strings.TrimSpace)
	for _, w := range words {
		v := w.value(&d)
		if i := slices.IndexFunc(w.allowed, func(a string) bool { return strings.EqualFold(a, *v) }); i >= 0 {
			*v = w.allowed[i]
		}
	}
	return d
}

// newlines ends every line by \n. JavaScript reads the three ways of ending a line as the
// same, even inside a template, so that a script keeps its meaning.
func newlines(s string) string {
	if !strings.ContainsRune(s, '\r') {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func each(list []string, f func(string) string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f(strings.TrimSpace(s))
	}
	return out
}

func (d *Definition) checkKey(p *problems) {
	key := d.ApiEngineKey
	switch {
	case key == "":
		p.add("ApiEngineKey", "is missing")
	case !keyForm.MatchString(key):
		p.add("ApiEngineKey", "must be 1 to 100 of A-Z, a-z, 0-9, '_', '.' and '-', not %q", clip(key))
	case key[0] == '.':
		p.add("ApiEngineKey", "must not begin with a dot: its file would be hidden")
	case strings.Contains(strings.ToLower(key), tenantMark):
		p.add("ApiEngineKey", "must not contain --OsClient--, which names the tenant in an address")
	case strings.EqualFold(d.Language, "ts") && strings.HasSuffix(strings.ToLower(key), ".d"):
		p.add("ApiEngineKey", "must not end in .d under Language ts: its file would be a .d.ts")
	}
}

// checkTexts bounds the free texts.
func (d *Definition) checkTexts(p *problems) {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"ApiName", d.ApiName, maxText}, {"ApiRemark", d.ApiRemark, maxRemark}, {"Category", d.Category, maxText},
		{"LockKey", d.LockKey, maxItem}, {"LockScope", d.LockScope, maxItem}, {"LockMsg", d.LockMsg, maxText},
	} {
		switch {
		case len(f.value) > f.limit:
			p.add(f.name, "must be at most %d bytes, not %d", f.limit, len(f.value))
		case !utf8.ValidString(f.value):
			p.add(f.name, "must be valid UTF-8")
		case f.name != "ApiRemark" && strings.ContainsFunc(f.value, unicode.IsControl):
			p.add(f.name, "must be one line without control characters")
		}
	}
}

// word is a field that takes one of a few words.
type word struct {
	field   string
	value   func(*Definition) *string
	allowed []string
}

var words = []word{
	{"Language", func(d *Definition) *string { return &d.Language }, []string{"js", "ts"}},
	{"ResponseType", func(d *Definition) *string { return &d.ResponseType }, []string{"auto", "JSON", "String", "HTML", "File"}},
	{"Transaction", func(d *Definition) *string { return &d.Transaction }, []string{"auto", "own", "none"}},
	{"Effects", func(d *Definition) *string { return &d.Effects }, []string{"staged", "immediate"}},
	{"Idempotency", func(d *Definition) *string { return &d.Idempotency }, []string{"off", "optional", "required"}},
}

func (d *Definition) checkWords(p *problems) {
	for _, w := range words {
		if v := *w.value(d); v != "" && !slices.Contains(w.allowed, v) {
			p.add(w.field, "must be one of %s, not %q", strings.Join(w.allowed, ", "), clip(v))
		}
	}
}

func (d *Definition) checkAddress(p *problems) {
	if d.ApiAddress == "" || d.ownAddress() {
		return
	}
	if _, err := parseAddress(d.ApiAddress); err != nil {
		p.add("ApiAddress", "%s", err)
	}
}

func (d *Definition) checkLists(p *problems) {
	for _, f := range []struct {
		name string
		list []string
		ok   func(string) string
	}{{"Methods", d.Methods, checkMethod}, {"ApiRole", d.ApiRole, checkRole}, {"Cors", d.Cors, checkOrigin}} {
		if len(f.list) > maxItems {
			p.add(f.name, "must have at most %d items, not %d", maxItems, len(f.list))
			continue
		}
		for i, item := range f.list {
			msg := f.ok(item)
			switch {
			case len(item) > maxItem:
				p.add(f.name, "has an item of %d bytes, at most %d are allowed", len(item), maxItem)
			case msg != "":
				p.add(f.name, "%s, not %q", msg, item)
			case slices.Contains(f.list[:i], item):
				p.add(f.name, "has %q twice", item)
			}
		}
	}
	if len(d.Cors) > 1 && slices.Contains(d.Cors, "*") {
		p.add("Cors", `must be "*" alone or a list of origins`)
	}
}

func checkMethod(m string) string {
	if slices.Contains(allMethods, m) {
		return ""
	}
	return "must be some of " + strings.Join(allMethods, ", ")
}

func checkRole(r string) string {
	if r == "" || !utf8.ValidString(r) || strings.ContainsFunc(r, unicode.IsControl) {
		return "must be names of roles"
	}
	return ""
}

func checkOrigin(o string) string {
	if o == "*" {
		return ""
	}
	u, err := url.Parse(o)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		o != u.Scheme+"://"+u.Host || strings.ContainsAny(u.Host, `*"'\ `) {
		return "must be origins like https://shop.example.com or http://localhost:3000, without a path"
	}
	return ""
}

func (d *Definition) checkLock(p *problems) {
	if d.LockKey == "" {
		return
	}
	names := strings.Split(d.LockKey, ",")
	for i, n := range names {
		switch {
		case strings.HasPrefix(n, "V8."):
			p.add("LockKey", "names parameters: %s and not %s", cmp.Or(strings.TrimPrefix(n, "V8.Param."), "Id"), n)
			return
		case !lockKeyForm.MatchString(n):
			p.add("LockKey", "must be names of request parameters, like OrderId, order.Id or ShopId,OrderId, not %q", clip(d.LockKey))
			return
		case slices.Contains(names[:i], n):
			p.add("LockKey", "has %q twice", n)
			return
		}
	}
}

// checkBudget lets package budget judge Timeout, LockWait and what follows from them.
func (d *Definition) checkBudget(p *problems) {
	var b *budget.Error
	if _, err := d.Plan(d.forTasks()); errors.As(err, &b) {
		p.add(b.Field, "%s", b.Msg)
	}
	if d.RateLimit == "" {
		return
	}
	var f *FieldError
	if _, _, err := ParseRate(d.RateLimit); errors.As(err, &f) {
		p.add(f.Field, "%s", f.Msg)
	}
}

var cronForm = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// checkLibrary refuses what would never be looked at: a library is not called.
func (d *Definition) checkLibrary(p *problems) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"Lock", d.Lock}, {"ApiAddress", d.ApiAddress != ""}, {"Schedule", d.Schedule != ""}} {
		if d.Library && f.given {
			p.add(f.name, "has no place in a library, which nobody calls")
		}
	}
}

func (d *Definition) checkSchedule(p *problems) {
	if d.Schedule == "" {
		return
	}
	zone, _, hasFields := strings.Cut(d.Schedule, " ")
	if strings.Contains(zone, "=") && (!hasFields || !strings.HasPrefix(zone, "TZ=") || zone == "TZ=") { // the parser panics on a zone alone
		p.add("Schedule", "must be TZ=<zone>, a space and 5 cron fields, not %q", clip(d.Schedule))
		return
	}
	switch plan, err := cronForm.Parse(d.Schedule); {
	case err != nil:
		p.add("Schedule", "is no cron expression of 5 fields: %v", err)
	case plan.Next(time.Now()).IsZero():
		p.add("Schedule", "names a day that never comes")
	}
}

func (d *Definition) checkTestParam(p *problems) {
	text, err := compactObject(d.TestParam)
	if err != nil {
		p.add("TestParam", "%s", err)
		return
	}
	d.TestParam = json.RawMessage(text)
}

func (d *Definition) checkCode(p *problems) {
	switch code := d.ApiV8Code; {
	case strings.TrimSpace(code) == "":
		p.add("ApiV8Code", "is missing: the API has no script")
	case len(code) > MaxCode:
		p.add("ApiV8Code", "must be at most %d bytes, not %d", MaxCode, len(code))
	case !utf8.ValidString(code):
		p.add("ApiV8Code", "must be valid UTF-8")
	}
	if d.FirstLine < 0 || d.FirstLine > MaxCode {
		p.add("FirstLine", "must be a line number from 1, not %d", d.FirstLine)
	}
}

// clip keeps a message short, whatever the author wrote.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "..."
}
