package jsbridge

import (
	"testing"
	"time"
)

func TestDateFormats(t *testing.T) {
	at := time.Date(2024, 2, 5, 15, 4, 9, 123456789, time.FixedZone("", 8*3600))
	for _, c := range []struct{ format, want string }{
		{"", "2024-02-05 15:04:09"}, {"yyyy-MM-dd HH:mm:ss", "2024-02-05 15:04:09"}, {"yyyy-MM-dd", "2024-02-05"},
		{"yyyyMMddHHmmss", "20240205150409"}, {"yyyyMMddHHmmssfff", "20240205150409123"}, {"HH:mm:ss.fff", "15:04:09.123"},
		{"yyyy-MM-ddTHH:mm:ss", "2024-02-05T15:04:09"}, {"yyyy-MM-dd'T'HH:mm:sszzz", "2024-02-05T15:04:09+08:00"},
		{"yyyy/M/d H:m:s", "2024/2/5 15:4:9"}, {"yy.MM.dd", "24.02.05"}, {"hh:mm tt", "03:04 PM"}, {"h t", "3 P"},
		{"yyyy年MM月dd日", "2024年02月05日"}, {"ddd dddd", "Mon Monday"}, {"MMM MMMM", "Feb February"}, {"z", "+08"},
		{"YYYY-MM-DD HH:mm:ss", "2024-02-05 15:04:09"}, {"'day' d", "day 5"}, {`\d\d d`, "dd 5"}, {"'open d", "open d"}, {`\`, ""},
		{"ffffffffffff", "123456789"}, {"y", "24"}, {"Y", "Y"}, {"D", "D"}, {"SSS", "123"},
	} {
		if got := formatDate(at, c.format); got != c.want {
			t.Errorf("%q: got %q, want %q", c.format, got, c.want)
		}
	}
}

func TestDatesAreReadAndAdded(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`DateFormat('2024-02-29T13:04:05', 'HH:mm')`, "13:04"}, {`DateFormat('2024/2/9 3:04', 'yyyy-MM-dd HH:mm')`, "2024-02-09 03:04"},
		{`DateFormat('2024-02', 'yyyyMMdd')`, "20240201"}, {`DateFormat(new Date(2024, 1, 29, 13), 'dd HH')`, "29 13"},
		{`DateFormat(new Date(2024, 1, 29).getTime(), 'MM-dd')`, "02-29"}, {`DateAdd('2024-01-31', 'M', '1', 'MM-dd')`, "02-29"},
		{`DateAdd('2024-11-30', 'q', 1, 'yyyy-MM-dd')`, "2025-02-28"}, {`DateAdd('2024-01-01 00:00:00', 's', -1)`, "2023-12-31 23:59:59"},
		{`DateAdd('2024-01-01', 'w', 1, 'dd')`, "08"}, {`DateAdd('2024-01-01 12:00:00', 'h', 1.5, 'HH:mm')`, "13:30"}, {`DateAdd('2024-01-01 12:00:00', 'm', 90, 'HH:mm')`, "13:30"},
		{`try { DateAdd(0, 'y', 1e9) } catch (e) { return e.message }`, "DateAdd: n is out of range"}, {`try { DateAdd(0, 'd', NaN) } catch (e) { return e.message }`, "DateAdd: n is out of range"},
		{`try { DateAdd(0, 'fortnight', 1) } catch (e) { return e.message }`, `DateAdd: the unit "fortnight" is none of s m h d w q M y`},
	} {
		code := c.code
		if code[:3] != "try" {
			code = "return " + code
		}
		if got := result(t, b, env(), code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

// FuzzDates: no format and no date text breaks; what DateNow writes, DateFormat reads.
func FuzzDates(f *testing.F) {
	for _, s := range []string{"yyyy-MM-dd HH:mm:ss", "'", `\`, "年", "2024-02-30", "0000-00-00", "2024-1-1T1:1:1.1+25:00", "\xff", "d'd"} {
		f.Add(s, int64(1706789045123))
	}
	f.Fuzz(func(t *testing.T, text string, ms int64) {
		at := time.UnixMilli(ms % 1e14)
		_ = formatDate(at, text)
		_, _ = parseDate("DateFormat", text)
		if y := at.Year(); y < 1000 || y > 9999 {
			return
		}
		back, err := parseDate("DateFormat", formatDate(at, "yyyy-MM-ddTHH:mm:ss.fffzzz"))
		if err != nil || !back.Equal(at) {
			if _, offset := at.Zone(); offset%60 == 0 { // older zones have seconds
				t.Errorf("%v came back as %v, %v", at, back, err)
			}
		}
	})
}
