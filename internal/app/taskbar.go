package app

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"apiengine/internal/client"
)

// taskBar shows a task that is followed: on a terminal as one line that is written over, with
// the log above it; elsewhere as a line for each step.
type taskBar struct {
	out   io.Writer
	width func() int // of the terminal; nil: there is none
	shown string     // the line that stands there
}

func newTaskBar(w io.Writer) *taskBar {
	b := &taskBar{out: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.width = func() int {
			n, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				n = 0
			}
			return cmp.Or(n, 80)
		}
	}
	return b
}

// clearLine goes to the begin of the line and empties it.
const clearLine = "\r\x1b[K"

func (b *taskBar) line(l client.TaskLine) {
	if b.width == nil {
		fmt.Fprintln(b.out, l)
		return
	}
	fmt.Fprint(b.out, clearLine, l, "\n", b.shown)
}

func (b *taskBar) change(t *client.Task) {
	if b.width != nil {
		b.shown = cut(barText(t, time.Now()), b.width()-1)
		fmt.Fprint(b.out, clearLine, b.shown)
		return
	}
	words := []string{t.Status}
	for _, w := range []string{strings.TrimSuffix(t.Percent(), "-"), t.Units()} {
		if w != "" {
			words = append(words, w)
		}
	}
	if said := cmp.Or(t.Error, t.Msg); said != "" {
		words = append(words, t.Word())
	}
	if text := strings.Join(words, " "); text != b.shown {
		b.shown = text
		fmt.Fprintln(b.out, text)
	}
}

// close leaves the last line where it is.
func (b *taskBar) close() {
	if b.width != nil && b.shown != "" {
		fmt.Fprintln(b.out)
	}
}

// barWidth is how many columns the bar itself has.
const barWidth = 30

// barText is the task in one line.
func barText(t *client.Task, now time.Time) string {
	fill, percent := strings.Repeat(" ", barWidth), "      "
	if t.Progress != nil {
		n := min(barWidth, int(*t.Progress/100*barWidth))
		fill = strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
		percent = fmt.Sprintf("%6s", t.Percent())
	}
	words := []string{"[" + fill + "]", percent, t.Status}
	if units := t.Units(); units != "" {
		words = append(words, units)
	}
	if t.Eta != nil {
		words = append(words, "eta "+max(0, t.Eta.Sub(now)).Round(time.Second).String())
	}
	return strings.Join(append(words, t.Word()), "  ")
}

// cut keeps a text in one line of a terminal. What is not ASCII counts as two columns, as
// most of it is that wide.
func cut(s string, columns int) string {
	for i, r := range s {
		if columns--; r > 0x7e {
			columns--
		}
		if columns < 0 {
			return s[:i]
		}
	}
	return s
}
