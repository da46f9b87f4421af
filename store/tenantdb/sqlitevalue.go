package tenantdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// liteKinds are the kinds of columns by what their declared type contains, in the order in
// which SQLite itself looks (https://www.sqlite.org/datatype3.html#determination_of_column_affinity);
// all after the floating ones have the affinity NUMERIC, which keeps any text.
var liteKinds = []struct {
	part string
	fit  func(c column, v any) (any, error)
}{
	{"real", floatFor}, {"floa", floatFor}, {"doub", floatFor},
	{"bool", booleanFor}, {"json", documentFor}, {"date", timeText}, {"time", timeText}, {"num", floatFor}, {"dec", floatFor},
}

// isLiteText tells the types with SQLite's affinity TEXT; those with "int" were sorted out before.
func isLiteText(typ string) bool {
	return strings.Contains(typ, "char") || strings.Contains(typ, "clob") || strings.Contains(typ, "text")
}

// liteValue refuses on SQLite what PostgreSQL refuses for a column of that type.
func liteValue(c column, v any) (any, error) {
	for _, k := range liteKinds {
		if strings.Contains(c.typ, k.part) {
			return k.fit(c, v)
		}
	}
	return v, nil
}

var decimal = regexp.MustCompile(`^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$`)

func floatFor(c column, v any) (any, error) {
	switch x := v.(type) {
	case int64, float64:
		return v, nil
	case string:
		if _, err := strconv.ParseFloat(strings.TrimSpace(x), 64); err == nil && decimal.MatchString(x) {
			return strings.TrimSpace(x), nil
		}
	}
	return nil, badValue(c, "a number, not "+shown(v))
}

// booleanFor takes what PostgreSQL takes, and stores 1 or 0.
func booleanFor(c column, v any) (any, error) {
	switch strings.ToLower(strings.TrimSpace(fmt.Sprint(v))) {
	case "true", "tru", "tr", "t", "yes", "ye", "y", "on", "1":
		return int64(1), nil
	case "false", "fals", "fal", "fa", "f", "no", "n", "off", "of", "0":
		return int64(0), nil
	}
	return nil, badValue(c, "true or false, not "+shown(v))
}

// documentFor takes what is JSON; an object or array comes as its text.
func documentFor(c column, v any) (any, error) {
	if s, ok := v.(string); ok && !gjson.Valid(s) {
		return nil, badValue(c, "JSON, not "+shown(v))
	}
	return v, nil
}

// timeText takes the ISO forms of dates and times, with one digit or two, and leaves the
// text as it is.
func timeText(c column, v any) (any, error) {
	if s, ok := v.(string); ok && isTime(strings.TrimSpace(s), strings.HasPrefix(c.typ, "time") && !strings.HasPrefix(c.typ, "timestamp")) {
		return v, nil
	}
	return nil, badValue(c, "a date or time such as 2024-02-29 13:04:05, not "+shown(v))
}

var (
	dateForms  = []string{"2006-1-2", "2006/1/2"}
	clockForms = []string{"15:4", "15:4:5"} // a fraction of the seconds is taken too
	zoneForms  = []string{"", "Z07:00", "Z0700", "Z07", " Z07:00", " Z0700", " Z07"}
)

func isTime(s string, alone bool) bool {
	for _, date := range dateForms {
		if is(s, date) || isClock(s, date+" ") || isClock(s, date+"T") {
			return true
		}
	}
	return alone && isClock(s, "")
}

func isClock(s, before string) bool {
	for _, clock := range clockForms {
		for _, zone := range zoneForms {
			if is(s, before+clock+zone) {
				return true
			}
		}
	}
	return false
}

func is(s, form string) bool {
	_, err := time.Parse(form, s)
	return err == nil
}

// shown is a value as a message names it.
func shown(v any) string {
	switch x := v.(type) {
	case string:
		return strconv.Quote(clipped(x))
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func clipped(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
