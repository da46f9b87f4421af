package tenantdb

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Sizes of a page of GetTableData.
const (
	defaultPage = 1000
	maxPage     = 5000
)

// formOptions are the options object of a FormEngine call, read but not yet checked
// against the schema.
type formOptions struct {
	key      string // FormEngineKey: the table, in calls that give everything in one object
	id       any    // nil: not given
	ids      []any
	hasIDs   bool
	where    []condition
	fields   []string
	page     int
	size     int
	orders   []ordering
	orderBy  string
	orderDir string
	notSave  []string
	values   []formValue
	fence    string // the column of _Fence
	// addMissing is _NoLineForAdd.
	addMissing bool
}

type ordering struct {
	field string
	desc  bool
}

type formValue struct {
	name  string
	value any
}

// optionReaders read the options that begin with _; which of them an operation takes is in formOps.
var optionReaders = map[string]func(o *formOptions, v gjson.Result) error{
	"_Where": func(o *formOptions, v gjson.Result) (err error) { o.where, err = parseWhere(v); return err },
	"_SelectFields": func(o *formOptions, v gjson.Result) (err error) {
		o.fields, err = names(v, "_SelectFields")
		return err
	},
	"_NotSaveField": func(o *formOptions, v gjson.Result) (err error) {
		o.notSave, err = names(v, "_NotSaveField")
		return err
	},
	"_PageIndex": func(o *formOptions, v gjson.Result) (err error) {
		o.page, err = count(v, "_PageIndex", 1<<31)
		return err
	},
	"_PageSize": func(o *formOptions, v gjson.Result) (err error) {
		o.size, err = count(v, "_PageSize", maxPage)
		return err
	},
	"_OrderBy":     func(o *formOptions, v gjson.Result) error { o.orderBy = v.String(); return nil },
	"_OrderByType": func(o *formOptions, v gjson.Result) error { o.orderDir = v.String(); return nil },
	"_OrderBys":    readOrders,
	"_NoLineForAdd": func(o *formOptions, v gjson.Result) (err error) {
		o.addMissing, err = yes(v, "_NoLineForAdd")
		return err
	},
	// _ForceUpt made the original platform write columns that it kept for itself; there are none.
	"_ForceUpt": func(_ *formOptions, v gjson.Result) error { _, err := yes(v, "_ForceUpt"); return err },
	"_Fence": func(o *formOptions, v gjson.Result) error {
		if v.Type != gjson.String || v.Str == "" {
			return badCall("_Fence is %s, not the name of a column", v.Raw)
		}
		o.fence = v.Str
		return nil
	},
}

// yes reads true and false, also as 1 and 0 or as text.
func yes(v gjson.Result, option string) (bool, error) {
	switch strings.ToLower(v.String()) {
	case "true", "1":
		return true, nil
	case "false", "0", "":
		return false, nil
	}
	return false, badCall("%s is %s, not true or false", option, v.Raw)
}

// readOptions reads raw; allowed are the names of the options that op takes.
func readOptions(op string, raw json.RawMessage, allowed []string) (*formOptions, error) {
	o := &formOptions{}
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if !gjson.ValidBytes(raw) {
		return nil, badCall("%s: the options are not valid JSON", op)
	}
	root := gjson.ParseBytes(raw)
	if !root.IsObject() && root.Type != gjson.Null {
		return nil, badCall("%s: the options are not an object", op)
	}
	var err error
	root.ForEach(func(k, v gjson.Result) bool {
		err = o.read(op, k.String(), v, allowed)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return o, o.finish()
}

func (o *formOptions) read(op, name string, v gjson.Result, allowed []string) error {
	switch {
	case name == "FormEngineKey":
		o.key = v.String()
	case strings.EqualFold(name, "Id"):
		return o.readID(op, v)
	case name == "Ids" && slices.Contains(allowed, "Ids"):
		ids, err := oldIDs(v)
		if err != nil || v.Type == gjson.Null {
			return badCall("%s: Ids is not a list of Ids", op)
		}
		o.ids, o.hasIDs = ids, true
	case name == "_InvokeType": // there are no form events, which is what Server asks for
		if v.String() != "Server" {
			return badCall("%s: _InvokeType %s: there are no form events", op, v.Raw)
		}
	case strings.HasPrefix(name, "_"):
		read := optionReaders[name]
		if read == nil || !slices.Contains(allowed, name) {
			return badCall("%s has no option %s%s", op, name, meant(name, allowed))
		}
		return read(o, v)
	case slices.Contains(allowed, "*"):
		o.values = append(o.values, formValue{name, jsonValue(v)})
	case name == "OsClient": // the tenant; it was resolved long before
	default:
		return badCall("%s has no option %s%s", op, name, meant(name, allowed))
	}
	return nil
}

// readID takes null and "" for no Id; what that means is the operation's business.
func (o *formOptions) readID(op string, v gjson.Result) error {
	switch {
	case v.IsObject() || v.IsArray() || v.IsBool():
		return badCall("%s: Id is neither a text nor a number", op)
	case v.Type == gjson.Null || v.Type == gjson.String && v.Str == "":
		return nil
	}
	o.id = jsonValue(v)
	return nil
}

func (o *formOptions) finish() error {
	o.page, o.size = cmp.Or(o.page, 1), cmp.Or(o.size, defaultPage)
	if o.orderBy == "" {
		return nil
	}
	field, dir, _ := strings.Cut(strings.TrimSpace(o.orderBy), " ") // "CreateTime desc" is seen as well
	desc, err := direction(cmp.Or(strings.TrimSpace(dir), o.orderDir))
	o.orders = append([]ordering{{field, desc}}, o.orders...)
	return err
}

func readOrders(o *formOptions, v gjson.Result) error {
	var err error
	one := func(k, d gjson.Result) bool {
		var desc bool
		desc, err = direction(d.String())
		o.orders = append(o.orders, ordering{k.String(), desc})
		return err == nil
	}
	switch {
	case v.Type == gjson.Null:
	case v.IsObject():
		v.ForEach(one)
	case v.IsArray():
		for _, item := range v.Array() {
			if !item.IsObject() {
				return badCall("_OrderBys is not {field: 'asc'|'desc', ...}")
			}
			if item.ForEach(one); err != nil {
				return err
			}
		}
	default:
		return badCall("_OrderBys is not {field: 'asc'|'desc', ...}")
	}
	return err
}

func direction(s string) (desc bool, err error) {
	switch strings.ToLower(s) {
	case "", "asc":
		return false, nil
	case "desc":
		return true, nil
	}
	return false, badCall("%q is no direction: asc or desc", s)
}

// names reads a list of column names, or one text with commas.
func names(v gjson.Result, option string) ([]string, error) {
	switch {
	case v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		var out []string
		for part := range strings.SplitSeq(v.Str, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
		return out, nil
	case !v.IsArray():
		return nil, badCall("%s is not a list of names", option)
	}
	var out []string
	for _, item := range v.Array() {
		if item.Type != gjson.String {
			return nil, badCall("%s holds %s, which is no name", option, item.Raw)
		}
		out = append(out, item.Str)
	}
	return out, nil
}

// count reads a number from 1 to most; it may be text, as form values are.
func count(v gjson.Result, option string, most int) (int, error) {
	if v.Type == gjson.Null {
		return 0, nil
	}
	f, err := strconv.ParseFloat(v.String(), 64)
	if err != nil || f != float64(int(f)) || f < 1 || f > float64(most) {
		return 0, badCall("%s is %s, not a whole number from 1 to %d", option, v.Raw, most)
	}
	return int(f), nil
}
