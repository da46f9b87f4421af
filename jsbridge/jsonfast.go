package jsbridge

import (
	"strconv"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// fast writes plain objects and arrays, whose ways to become JSON nobody has changed. It
// reports false without having written anything for everything else.
func (w *jsonWriter) fast(obj *goja.Object) (bool, error) {
	m := w.r.m
	if o := m.in.plain(obj); o != nil {
		if w.allow != nil || o.prototype != m.objectProto || !o.inOrder() {
			return false, nil
		}
		if err := w.enter(obj); err != nil {
			return false, err
		}
		return true, w.leave(w.fastObject(obj, o))
	}
	o, list := m.in.list(obj)
	if o == nil || o.prototype != m.arrayProto || len(o.propNames) != 1 { // its length
		return false, nil
	}
	if err := w.enter(obj); err != nil {
		return false, err
	}
	return true, w.leave(w.fastArray(obj, list))
}

// fastObject takes the keys as they are now: what runs meanwhile may change the object. Which
// of them are enumerable is looked at before anything can run.
func (w *jsonWriter) fastObject(obj *goja.Object, o *plainObject) error {
	w.buf = append(w.buf, '{')
	start, from := len(w.buf), len(w.names)
	w.names = append(w.names, o.propNames...)
	chosen := false
	for i := from; i < len(w.names); i++ {
		name := w.names[i]
		v := o.values[name]
		p := w.r.m.in.propertyIn(&v)
		if p != nil && !p.enumerable && !chosen {
			continue
		}
		if _, isObj := v.(*goja.Object); !chosen && (isObj || p != nil) {
			w.names, chosen = w.enumerable(o, i+1), true
		}
		if v == nil || p != nil {
			v = w.r.m.get(obj, name)
		}
		before := w.openMember(start, name, v)
		wrote, err := w.member(obj, name, v)
		if err := w.closeMember(before, name, wrote, err); err != nil {
			return err
		}
	}
	w.names = w.names[:from]
	w.end(start, '}')
	return nil
}

// enumerable is the list of names without those from one on that are not enumerable in o.
func (w *jsonWriter) enumerable(o *plainObject, from int) []unistring.String {
	keep := w.names[:from]
	for _, name := range w.names[from:] {
		v := o.values[name]
		if p := w.r.m.in.propertyIn(&v); p == nil || p.enumerable {
			keep = append(keep, name)
		}
	}
	return keep
}

func (w *jsonWriter) member(holder *goja.Object, name unistring.String, v goja.Value) (bool, error) {
	if _, isObj := v.(*goja.Object); isObj {
		return w.write(holder, name, v)
	}
	return w.leaf(v)
}

// leaf writes what is no object.
func (w *jsonWriter) leaf(v goja.Value) (bool, error) {
	if w.count++; w.count%256 == 0 {
		w.r.checkStopped()
	}
	return w.primitive(v)
}

func (w *jsonWriter) fastArray(obj *goja.Object, list *plainArray) error {
	w.buf = append(w.buf, '[')
	start := len(w.buf)
	for i, n := 0, int(list.length); i < n; i++ {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.newline()
		var v goja.Value
		if i < len(list.values) {
			v = list.values[i]
		}
		if v == nil || w.r.m.in.propertyIn(&v) != nil { // a hole, an accessor
			v = orUndefined(obj.Get(strconv.Itoa(i)))
		}
		var wrote bool
		var err error
		if _, isObj := v.(*goja.Object); isObj {
			wrote, err = w.write(obj, indexName(int64(i)), v)
		} else {
			wrote, err = w.leaf(v)
		}
		if err := w.closeItem(int64(i), wrote, err); err != nil {
			return err
		}
	}
	w.end(start, ']')
	return nil
}
