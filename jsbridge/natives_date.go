package jsbridge

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func dateFuncs() []Func {
	return []Func{
		Fn(".DateNow", "the time now in the format (yyyy MM dd HH hh mm ss fff ddd MMM tt zzz, 'text'), default 'yyyy-MM-dd HH:mm:ss'",
			func(_ *Call, in struct {
				Format string `js:"format,optional"`
			}) (any, error) {
				return formatDate(time.Now(), in.Format), nil
			}),
		Fn(".DateFormat", "a Date, milliseconds or text, in the format",
			func(_ *Call, in struct {
				Value  any
				Format string `js:"format,optional"`
			}) (any, error) {
				t, err := parseDate("DateFormat", in.Value)
				if err != nil {
					return nil, err
				}
				return formatDate(t, in.Format), nil
			}),
		Fn(".DateAdd", "the date with n units (s m h d w q M y) added, in the format",
			func(_ *Call, in struct {
				Value  any
				Unit   string
				N      any    `js:"n"`
				Format string `js:"format,optional"`
			}) (any, error) {
				t, err := parseDate("DateAdd", in.Value)
				if err != nil {
					return nil, err
				}
				n, err := numberOf("DateAdd", in.N)
				if err != nil {
					return nil, err
				}
				if t, err = addDate(t, in.Unit, n); err != nil {
					return nil, err
				}
				return formatDate(t, in.Format), nil
			}),
	}
}

// numberOf reads a number, or text of one, as parameters of a query string are.
func numberOf(fn string, v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, nil
		}
	}
	return 0, argErrorf("%s: argument \"n\" must be a number, not %s", fn, got(v))
}

// parseDate reads a Date (arrives as ISO text), milliseconds since 1970, or text. Text
// without a zone is local time, as what DateNow gives.
func parseDate(fn string, v any) (time.Time, error) {
	switch v := v.(type) {
	case int64:
		return dateOf(fn, float64(v))
	case float64:
		return dateOf(fn, v)
	case string:
		for _, layout := range []string{"2006-1-2T15:4:5.999999999Z07:00", "2006-1-2 15:4:5.999999999Z07:00"} {
			if t, err := time.Parse(layout, v); err == nil {
				return t.Local(), nil
			}
		}
		text := strings.ReplaceAll(strings.Replace(strings.TrimSpace(v), "T", " ", 1), "/", "-")
		for _, layout := range []string{"2006-1-2 15:4:5.999999999", "2006-1-2 15:4", "2006-1-2", "2006-1"} {
			if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
				return t, nil
			}
		}
		return time.Time{}, argErrorf("%s: %q is no date", fn, v)
	}
	if v == nil { // new Date(NaN) arrives so too
		return time.Time{}, argErrorf("%s: the value is no date, or an invalid one", fn)
	}
	return time.Time{}, argErrorf("%s: the value must be a Date, milliseconds or text, not %s", fn, got(v))
}

// maxDate is as far as a Date of the language goes from 1970, in milliseconds.
const maxDate = 8.64e15

func dateOf(fn string, ms float64) (time.Time, error) {
	if math.IsNaN(ms) || math.Abs(ms) > maxDate {
		return time.Time{}, argErrorf("%s: %v is no date", fn, ms)
	}
	return time.UnixMilli(int64(ms)), nil
}

// maxDateSteps keep the sum within years that a time can hold.
var maxDateSteps = map[string]float64{"s": 9e9, "m": 1.5e8, "h": 2.5e6, "d": 4e6, "w": 5e5, "q": 4e4, "M": 12e4, "y": 1e4}

func addDate(t time.Time, unit string, n float64) (time.Time, error) {
	most, known := maxDateSteps[unit]
	switch {
	case !known:
		return t, argErrorf("DateAdd: the unit %q is none of s m h d w q M y", unit)
	case n != n || n > most || n < -most:
		return t, argErrorf("DateAdd: n is out of range")
	}
	months := func(by int) time.Time { // the 31st plus a month is the month's last day
		first := time.Date(t.Year(), t.Month()+time.Month(by), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
		last := first.AddDate(0, 1, -1).Day()
		return first.AddDate(0, 0, min(t.Day(), last)-1)
	}
	whole := int(n)
	switch unit {
	case "s":
		return t.Add(time.Duration(n * float64(time.Second))), nil
	case "m":
		return t.Add(time.Duration(n * float64(time.Minute))), nil
	case "h":
		return t.Add(time.Duration(n * float64(time.Hour))), nil
	case "d":
		return t.AddDate(0, 0, whole), nil
	case "w":
		return t.AddDate(0, 0, 7*whole), nil
	case "q":
		return months(3 * whole), nil
	case "M":
		return months(whole), nil
	}
	return months(12 * whole), nil
}
