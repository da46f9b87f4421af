package client

import (
	"os"
	"regexp"

	"apiengine/apis"
	"apiengine/fault"
)

// warnings are what works in the folder's files and should yet be written in another way.
func (f *folder) warnings(lint func([]apis.Definition) []Discovery) []Problem {
	var out []Problem
	defs := make([]apis.Definition, len(f.files))
	for i, l := range f.files {
		defs[i] = l.def
		out = append(out, f.settingWarnings(l)...)
	}
	if lint != nil {
		for _, d := range lint(defs) {
			out = append(out, Problem{File: f.path(f.files[d.Definition].name), Line: d.Line, Column: d.Column, Kind: fault.BadRequest, Msg: d.Msg})
		}
	}
	out = append(out, f.belowWarnings()...)
	byPlace(out)
	return out
}

// belowWarnings are about folders with definition files that nobody reads.
func (f *folder) belowWarnings() []Problem {
	var out []Problem
	for _, name := range apis.FilesBelow(os.DirFS(f.dir)) {
		out = append(out, Problem{File: f.path(name), Line: 1, Column: 1, Kind: fault.BadRequest,
			Msg: "is not read: definitions stand in " + f.path("") + " itself, and a folder of its own is checked and pushed by itself"})
	}
	return out
}

var emptyMethods = regexp.MustCompile(`(?m)^Methods:[ \t]*\[[ \t]*\][ \t]*(#.*)?$`)

// settingWarnings are about settings that do nothing, or not what they seem to.
func (f *folder) settingWarnings(l localFile) []Problem {
	d := &l.def
	var out []Problem
	warn := func(field, msg string) {
		out = append(out, Problem{File: f.path(l.name), Line: l.lineOf(field), Column: 1, Field: field, Kind: fault.BadRequest, Msg: msg})
	}
	for _, s := range []struct {
		field string
		given bool
	}{{"LockKey", d.LockKey != ""}, {"LockScope", d.LockScope != ""}, {"LockMsg", d.LockMsg != ""}, {"LockWait", d.LockWait != nil}} {
		if s.given && !d.Lock && !l.broken {
			warn(s.field, "does nothing without Lock: true")
		}
	}
	if header, _, ok := cutSettings(l.src); ok && emptyMethods.Match(header) {
		warn("Methods", "is empty, which means all of GET, POST, PUT, PATCH and DELETE; leave it out for all, or name some; StopHttp: true closes the API")
	}
	return out
}
