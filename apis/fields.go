package apis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"apiengine/nearest"
)

// field is one setting: how it is read from a file and how it is written there. Files are
// written in the order of the table, which is the contract's.
type field struct {
	name string
	want string // reads on after "must be"
	// set reads a value that is not null. errType: it is of another type; a *nodeError
	// says more.
	set func(*Definition, ast.Node) error
	// show is the value as YAML; empty: it is the default and left out.
	show func(*Definition) string
}

var fields = []field{
	text("ApiEngineKey", "", func(d *Definition) *string { return &d.ApiEngineKey }),
	text("ApiName", "", func(d *Definition) *string { return &d.ApiName }),
	text("ApiRemark", "", func(d *Definition) *string { return &d.ApiRemark }),
	text("Category", "", func(d *Definition) *string { return &d.Category }),
	text("ApiAddress", "", func(d *Definition) *string { return &d.ApiAddress }),
	silent(text("Language", "", func(d *Definition) *string { return &d.Language })), // the file's ending says it
	isEnable(),
	flag("StopHttp", func(d *Definition) *bool { return &d.StopHttp }),
	flag("Library", func(d *Definition) *bool { return &d.Library }),
	flag("AllowAnonymous", func(d *Definition) *bool { return &d.AllowAnonymous }),
	list("ApiRole", nil, func(d *Definition) *[]string { return &d.ApiRole }),
	list("Methods", allMethods, func(d *Definition) *[]string { return &d.Methods }),
	text("ResponseType", "auto", func(d *Definition) *string { return &d.ResponseType }),
	flag("Lock", func(d *Definition) *bool { return &d.Lock }),
	text("LockKey", "", func(d *Definition) *string { return &d.LockKey }),
	text("LockScope", "", func(d *Definition) *string { return &d.LockScope }),
	text("LockMsg", "", func(d *Definition) *string { return &d.LockMsg }),
	timeout(),
	lockWait(),
	text("Transaction", "auto", func(d *Definition) *string { return &d.Transaction }),
	effects(),
	text("Idempotency", "optional", func(d *Definition) *string { return &d.Idempotency }),
	text("RateLimit", "", func(d *Definition) *string { return &d.RateLimit }),
	flag("LogParam", func(d *Definition) *bool { return &d.LogParam }),
	flag("LogResult", func(d *Definition) *bool { return &d.LogResult }),
	list("Cors", nil, func(d *Definition) *[]string { return &d.Cors }),
	testParam(),
	text("Schedule", "", func(d *Definition) *string { return &d.Schedule }),
}

func text(name, def string, at func(*Definition) *string) field {
	return field{name, "text; put it in quotes when it looks like something else",
		func(d *Definition, n ast.Node) (err error) {
			*at(d), err = textOf(n)
			return err
		},
		func(d *Definition) string {
			if s := *at(d); s != def {
				return yamlText(s)
			}
			return ""
		}}
}

func silent(f field) field {
	f.show = func(*Definition) string { return "" }
	return f
}

func flag(name string, at func(*Definition) *bool) field {
	return field{name, "true or false",
		func(d *Definition, n ast.Node) error {
			b, ok := n.(*ast.BoolNode)
			if !ok {
				return errType
			}
			*at(d) = b.Value
			return nil
		},
		func(d *Definition) string {
			if *at(d) {
				return "true"
			}
			return ""
		}}
}

func isEnable() field {
	f := flag("IsEnable", func(d *Definition) *bool {
		if d.IsEnable == nil {
			d.IsEnable = new(bool)
		}
		return d.IsEnable
	})
	f.show = func(d *Definition) string {
		if d.Enabled() {
			return ""
		}
		return "false"
	}
	return f
}

func list(name string, def []string, at func(*Definition) *[]string) field {
	return field{name, "a list of texts, like [A, B]",
		func(d *Definition, n ast.Node) error {
			seq, ok := n.(*ast.SequenceNode)
			if !ok {
				return errType
			}
			for _, item := range seq.Values {
				s, err := textOf(item)
				if err != nil {
					return &nodeError{item.GetToken(), "must be a list of texts; put this item in quotes"}
				}
				*at(d) = append(*at(d), s)
			}
			return nil
		},
		func(d *Definition) string {
			items := *at(d)
			if len(items) == 0 || slices.Equal(items, def) {
				return ""
			}
			return yamlList(items)
		}}
}

const wantSeconds = "a whole number of seconds"

func timeout() field {
	return field{"Timeout", wantSeconds + " from 1",
		func(d *Definition, n ast.Node) (err error) {
			if d.Timeout, err = intOf(n); d.Timeout == 0 {
				return errType
			}
			return err
		},
		func(d *Definition) string {
			var none Definition
			if d.Timeout == none.withDefaults().Timeout {
				return ""
			}
			return strconv.Itoa(d.Timeout)
		}}
}

func lockWait() field {
	return field{"LockWait", wantSeconds,
		func(d *Definition, n ast.Node) error {
			i, err := intOf(n)
			d.LockWait = &i
			return err
		},
		func(d *Definition) string {
			if d.LockWait == nil {
				return ""
			}
			return strconv.Itoa(*d.LockWait)
		}}
}

func effects() field {
	f := text("Effects", "", func(d *Definition) *string { return &d.Effects })
	f.show = func(d *Definition) string {
		if d.Effects == d.defaultEffects() {
			return ""
		}
		return d.Effects
	}
	return f
}

func testParam() field {
	return field{"TestParam", "an object",
		func(d *Definition, n ast.Node) error {
			if _, ok := n.(*ast.MappingNode); !ok {
				return errType
			}
			text, err := appendJSON(nil, n, 0)
			d.TestParam = json.RawMessage(text)
			return err
		},
		func(d *Definition) string {
			if len(d.TestParam) == 0 || string(d.TestParam) == "{}" {
				return ""
			}
			return yamlJSON(d.TestParam)
		}}
}

func fieldByName(name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// kindOf is what a field's JSON value must be.
func kindOf(name string) string {
	if f, ok := fieldByName(name); ok {
		return f.want
	}
	switch name {
	case "":
		return "an object"
	case "FirstLine":
		return "a line number"
	}
	return "text"
}

// unknownField says that there is no such field, and which one was probably meant.
func unknownField(name string) string {
	names := []string{"ApiV8Code"}
	for _, f := range fields {
		names = append(names, f.name)
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf("is no field of a definition; did you mean %s?", near)
	}
	return "is no field of a definition"
}
