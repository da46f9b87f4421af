package lint

import (
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"

	"apiengine/nearest"
)

// use is one V8.Use with a name that is written in the script.
type use struct {
	name         string
	line, column int
}

func (f *file) library(call *ast.CallExpression) {
	if f.called(call) != "V8.Use" || len(call.ArgumentList) == 0 {
		return
	}
	s, ok := call.ArgumentList[0].(*ast.StringLiteral)
	if !ok {
		return
	}
	u := use{name: strings.TrimPrefix(s.Value.String(), "lib/")}
	u.line, u.column = f.tree.Place(call.Idx0())
	f.uses = append(f.uses, u)
}

// libraries is who uses whom.
type libraries struct {
	scripts []Script
	uses    [][]use
	out     []Warning
	state   []int // of the search for circles: 0 new, 1 on the way, 2 done
	way     []int
}

func (l *libraries) warnings() []Warning {
	l.state = make([]int, len(l.scripts))
	for i := range l.scripts {
		for _, u := range l.uses[i] {
			if msg := l.problem(u.name); msg != "" {
				l.warn(i, u, "%s", msg)
			}
		}
	}
	for i := range l.scripts {
		l.follow(i)
	}
	return l.out
}

func (l *libraries) warn(script int, u use, format string, args ...any) {
	l.out = append(l.out, Warning{Script: script, Line: u.line, Column: u.column, Msg: fmt.Sprintf(format, args...)})
}

func (l *libraries) find(name string) int {
	for i, s := range l.scripts {
		if strings.EqualFold(s.Key, name) {
			return i
		}
	}
	return -1
}

func (l *libraries) problem(name string) string {
	i := l.find(name)
	switch {
	case i < 0:
		var known []string
		for _, s := range l.scripts {
			if s.Library {
				known = append(known, s.Key)
			}
		}
		msg := fmt.Sprintf("there is no library %q in this folder", name)
		if near := nearest.Name(name, known); near != "" {
			msg += "; did you mean " + near + "?"
		}
		return msg
	case !l.scripts[i].Library:
		return fmt.Sprintf("%q is no library; its definition says no Library: true", l.scripts[i].Key)
	}
	return ""
}

// follow goes along the uses of a script; one that leads back is a circle.
func (l *libraries) follow(i int) {
	if l.state[i] != 0 {
		return
	}
	l.state[i], l.way = 1, append(l.way, i)
	for _, u := range l.uses[i] {
		next := l.find(u.name)
		if next < 0 {
			continue
		}
		if l.state[next] == 1 {
			l.warn(i, u, "libraries use one another in a circle: %s", l.circle(next))
		}
		l.follow(next)
	}
	l.state[i], l.way = 2, l.way[:len(l.way)-1]
}

// circle names the way from a script that is on it back to itself.
func (l *libraries) circle(to int) string {
	var names []string
	for _, i := range l.way {
		if i == to || len(names) > 0 {
			names = append(names, l.scripts[i].Key)
		}
	}
	return strings.Join(append(names, l.scripts[to].Key), " -> ")
}
