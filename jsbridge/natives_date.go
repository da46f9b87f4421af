package jsbridge

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func dateFuncs() []Func {
	return []Func{
		Fn(".DateNow", "the time now in the format (yyyy MM dd HH mm ss fff), default 'yyyy-MM-dd HH:mm:ss'",
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
				N      float64 `js:"n"`
				Format string  `js:"format,optional"`
			}) (any, error) {
				t, err := parseDate("DateAdd", in.Value)
				if err != nil {
					return nil, err
				}
				if t, err = addDate(t, in.Unit, in.N); err != nil {
					return nil, err
				}
				return formatDate(t, in.Format), nil
			}),
	}
}

// parseDate reads a Date (arrives as ISO text), milliseconds since 1970, or text. Text
// without a zone is local time, as what DateNow gives.
func parseDate(fn string, v any) (time.Time, error) {
	switch v := v.(type) {
	case int64:
		return time.UnixMilli(v), nil
	case float64:
		return time.UnixMilli(int64(v)), nil
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
	return time.Time{}, argErrorf("%s: the value must be a Date, milliseconds or text, not %s", fn, got(v))
}

func formatDate(t time.Time, format string) string {
	if format == "" {
		format = "yyyy-MM-dd HH:mm:ss"
	}
	var b strings.Builder
	for i := 0; i < len(format); {
		n := 1
		for i+n < len(format) && format[i+n] == format[i] {
			n++
		}
		b.WriteString(datePart(t, format[i:i+n]))
		i += n
	}
	return b.String()
}

func datePart(t time.Time, part string) string {
	n := len(part)
	switch part[0] {
	case 'y':
		y := fmt.Sprintf("%04d", t.Year())
		if n == 2 {
			return y[2:]
		}
		return y
	case 'M':
		return padded(int(t.Month()), n)
	case 'd':
		return padded(t.Day(), n)
	case 'H':
		return padded(t.Hour(), n)
	case 'h':
		return padded((t.Hour()+11)%12+1, n)
	case 'm':
		return padded(t.Minute(), n)
	case 's':
		return padded(t.Second(), n)
	case 'f':
		return fmt.Sprintf("%09d", t.Nanosecond())[:min(n, 9)]
	}
	return part
}

func padded(v, width int) string {
	s := strconv.Itoa(v)
	return strings.Repeat("0", max(0, min(width, 2)-len(s))) + s
}

func addDate(t time.Time, unit string, n float64) (time.Time, error) {
	if n != n || n > 1e11 || n < -1e11 {
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
	case "y":
		return months(12 * whole), nil
	}
	return t, argErrorf("DateAdd: the unit %q is none of s m h d w q M y", unit)
}
