package jsbridge

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// formatDate writes t as .NET's custom formats do, which the original platform's scripts
// use: yyyy MM dd HH hh mm ss fff ddd dddd MMM MMMM tt zzz, 'text' and \c as they are, and
// everything else as it is. YYYY and DD, which JavaScript's libraries use, mean yyyy and dd.
func formatDate(t time.Time, format string) string {
	if format == "" {
		format = "yyyy-MM-dd HH:mm:ss"
	}
	var b strings.Builder
	for i := 0; i < len(format); {
		n := 1
		switch format[i] {
		case '\'', '"':
			text, width := quoted(format[i:])
			b.WriteString(text)
			n = width
		case '\\':
			b.WriteString(format[i+1 : min(i+2, len(format))])
			n = 2
		default:
			for i+n < len(format) && format[i+n] == format[i] {
				n++
			}
			b.WriteString(datePart(t, format[i:i+n]))
		}
		i += n
	}
	return b.String()
}

// quoted is the text between the quote that s begins with and the next one, or the end.
func quoted(s string) (text string, width int) {
	end := strings.IndexByte(s[1:], s[0])
	if end < 0 {
		return s[1:], len(s)
	}
	return s[1 : 1+end], end + 2
}

func datePart(t time.Time, part string) string {
	n := len(part)
	switch part[0] {
	case 'y', 'Y':
		if part[0] == 'Y' && n == 1 { // a literal
			return part
		}
		return yearPart(t.Year(), n)
	case 'M':
		return namedPart(int(t.Month()), t.Month().String(), n)
	case 'd':
		return namedPart(t.Day(), t.Weekday().String(), n)
	case 'D':
		if n == 2 {
			return padded(t.Day(), n)
		}
	case 'H':
		return padded(t.Hour(), n)
	case 'h':
		return padded((t.Hour()+11)%12+1, n)
	case 'm':
		return padded(t.Minute(), n)
	case 's':
		return padded(t.Second(), n)
	case 'f', 'S':
		return fmt.Sprintf("%09d", t.Nanosecond())[:min(n, 9)]
	case 't':
		return t.Format("PM")[:min(n, 2)]
	case 'z':
		return zonePart(t, n)
	}
	return part
}

func yearPart(year, n int) string {
	text := fmt.Sprintf("%04d", year)
	if n <= 2 {
		return text[len(text)-2:]
	}
	return text
}

// namedPart is a number for one or two letters, a short name for three, else the name.
func namedPart(v int, name string, n int) string {
	switch {
	case n < 3:
		return padded(v, n)
	case n == 3:
		return name[:3]
	}
	return name
}

func zonePart(t time.Time, n int) string {
	switch n {
	case 1, 2:
		return t.Format("-07")
	}
	return t.Format("-07:00")
}

func padded(v, width int) string {
	s := strconv.Itoa(v)
	return strings.Repeat("0", max(0, min(width, 2)-len(s))) + s
}
