package jsbridge

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// JSON of plain objects and arrays spends most of its time in goja's general way to look at
// an object: an iterator of closures for its keys, a lookup through the prototypes for each
// value. A plain object is a map and a list of names inside, an array a list of values. This
// file reaches them where they are. What is not exactly that, accessors and other prototypes
// too, goes the general way.
//
// The fields are private. Their names, types and order are looked at once; a goja that has
// others makes no Bridge.

// plainObject is goja's baseObject up to the last field that is used here.
type plainObject struct {
	class      string
	val        *goja.Object
	prototype  *goja.Object
	extensible bool

	values    map[unistring.String]goja.Value
	propNames []unistring.String

	lastSortedPropLen, idxPropCount int
}

// plainArray is what of goja's arrayObject follows its baseObject.
type plainArray struct {
	values         []goja.Value
	length         uint32
	objCount       int
	propValueCount int
}

// slot is goja's valueProperty: what stands in an object for a value that is not plain.
type slot struct {
	value        goja.Value
	writable     bool
	configurable bool
	enumerable   bool
}

// words are an interface value: what type it is, and where the value is.
type words struct{ tab, data unsafe.Pointer }

func wordsOf(v *goja.Value) *words { return (*words)(unsafe.Pointer(v)) }

// layout knows goja's own types by the first word of an interface that holds one.
type layout struct {
	self     uintptr // of the implementation in goja.Object
	rest     uintptr // of plainArray in an arrayObject
	object   unsafe.Pointer
	array    unsafe.Pointer
	property unsafe.Pointer
	ascii    unsafe.Pointer
	integer  unsafe.Pointer
	double   unsafe.Pointer
	small    [1024]goja.Value // integers from 0
	yes, no  goja.Value
}

var errLayout = errors.New("jsbridge: goja keeps its objects otherwise than this package knows")

// newLayout looks at goja's types.
func newLayout() (*layout, error) {
	rt := goja.New()
	self, ok := reflect.TypeFor[goja.Object]().FieldByName("self")
	if !ok || self.Type.Kind() != reflect.Interface || self.Type.NumMethod() == 0 {
		return nil, fmt.Errorf("%w: Object", errLayout)
	}
	l := &layout{self: self.Offset}
	object, array := rt.NewObject(), rt.NewArray()
	_ = object.DefineAccessorProperty("a", nil, nil, goja.FLAG_TRUE, goja.FLAG_TRUE)
	base, list := l.implementation(object), l.implementation(array)
	if err := sameFields(base, reflect.TypeFor[plainObject](), 0); err != nil {
		return nil, err
	}
	if list.Kind() != reflect.Struct || list.NumField() == 0 || list.Field(0).Type != base {
		return nil, fmt.Errorf("%w: %v", errLayout, list)
	}
	l.rest = list.Field(0).Type.Size()
	if err := sameFields(list, reflect.TypeFor[plainArray](), 1); err != nil {
		return nil, err
	}
	l.object, l.array = l.impl(object).tab, l.impl(array).tab
	accessor := (*plainObject)(l.impl(object).data).values["a"]
	if err := sameFields(reflect.TypeOf(accessor).Elem(), reflect.TypeFor[slot](), 0); err != nil {
		return nil, err
	}
	l.property = wordsOf(&accessor).tab
	return l, l.values(rt)
}

// values learns the types of texts and numbers.
func (l *layout) values(rt *goja.Runtime) error {
	text, integer, double := rt.ToValue("a"), rt.ToValue(1), rt.ToValue(1.5)
	for v, kind := range map[goja.Value]reflect.Kind{text: reflect.String, integer: reflect.Int64, double: reflect.Float64} {
		if reflect.TypeOf(v).Kind() != kind {
			return fmt.Errorf("%w: %T", errLayout, v)
		}
	}
	l.ascii, l.integer, l.double = wordsOf(&text).tab, wordsOf(&integer).tab, wordsOf(&double).tab
	for i := range l.small {
		l.small[i] = rt.ToValue(i)
	}
	l.yes, l.no = rt.ToValue(true), rt.ToValue(false)
	return nil
}

func (l *layout) impl(obj *goja.Object) *words {
	return (*words)(unsafe.Add(unsafe.Pointer(obj), l.self))
}

func (l *layout) implementation(obj *goja.Object) reflect.Type {
	return reflect.ValueOf(obj).Elem().FieldByName("self").Elem().Type().Elem()
}

// sameFields compares the fields of theirs from one on with those of ours.
func sameFields(theirs, ours reflect.Type, from int) error {
	if theirs.Kind() != reflect.Struct || theirs.NumField() < from+ours.NumField() {
		return fmt.Errorf("%w: %v", errLayout, theirs)
	}
	start := theirs.Field(from).Offset
	for i := range ours.NumField() {
		a, b := theirs.Field(from+i), ours.Field(i)
		if a.Name != b.Name || a.Type != b.Type || a.Offset-start != b.Offset {
			return fmt.Errorf("%w: %v.%s", errLayout, theirs, a.Name)
		}
	}
	return nil
}

// plain is the inside of an object that is nothing else; nil for others.
func (l *layout) plain(obj *goja.Object) *plainObject {
	if w := l.impl(obj); w.tab == l.object {
		return (*plainObject)(w.data)
	}
	return nil
}

// list is the inside of an array that is not sparse; nil for others.
func (l *layout) list(obj *goja.Object) (*plainObject, *plainArray) {
	if w := l.impl(obj); w.tab == l.array {
		return (*plainObject)(w.data), (*plainArray)(unsafe.Add(w.data, l.rest))
	}
	return nil, nil
}

// propertyIn is the property that stands in a plain value's place; nil for a plain value.
func (l *layout) propertyIn(v *goja.Value) *slot {
	if w := wordsOf(v); w.tab == l.property {
		return (*slot)(w.data)
	}
	return nil
}

// textValue is a text that is ASCII.
func (l *layout) textValue(s string) (v goja.Value) {
	at := new(string)
	*at = s
	*wordsOf(&v) = words{l.ascii, unsafe.Pointer(at)}
	return v
}

// intValue is an integer that a double holds.
func (l *layout) intValue(n int64) (v goja.Value) {
	if n >= 0 && n < int64(len(l.small)) {
		return l.small[n]
	}
	at := new(int64)
	*at = n
	*wordsOf(&v) = words{l.integer, unsafe.Pointer(at)}
	return v
}

// doubleValue is a number that is no integer.
func (l *layout) doubleValue(f float64) (v goja.Value) {
	at := new(float64)
	*at = f
	*wordsOf(&v) = words{l.double, unsafe.Pointer(at)}
	return v
}

// arrayOf makes an array of values, which it keeps.
func (l *layout) arrayOf(rt *goja.Runtime, values []goja.Value) *goja.Object {
	obj := rt.NewArray()
	_, a := l.list(obj)
	a.values, a.length, a.objCount = values, uint32(len(values)), len(values)
	return obj
}

// put sets an own property of an object that has plain ones only.
func (o *plainObject) put(name unistring.String, v goja.Value) {
	if _, has := o.values[name]; !has {
		o.propNames = append(o.propNames, name)
	}
	o.values[name] = v
}

// inOrder tells that the names stand in the order of the language, which puts numbers first,
// and that none is toJSON.
func (o *plainObject) inOrder() bool {
	for _, name := range o.propNames {
		if len(name) > 0 && name[0] >= '0' && name[0] <= '9' || name == "toJSON" {
			return false
		}
	}
	return true
}
