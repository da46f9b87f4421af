package jsbridge

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/dop251/goja"
)

// bytes are a string's UTF-8, or what an ArrayBuffer or a Uint8Array holds.
func (a argValue) bytes() ([]byte, error) {
	if goja.IsString(a.v) {
		return []byte(a.v.String()), nil
	}
	if obj, ok := a.v.(*goja.Object); ok {
		if raw, ok := bufferOf(obj); ok {
			return bytes.Clone(raw), nil
		}
		return nil, fmt.Errorf("must be a string or bytes, not an object")
	}
	v, err := a.plain()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("must be a string or bytes, not %s", got(v))
}

var (
	typeBuffer    = reflect.TypeFor[goja.ArrayBuffer]()
	typeByteArray = reflect.TypeFor[[]byte]()
)

// bufferOf is what an ArrayBuffer or a Uint8Array holds, the script's own memory.
func bufferOf(obj *goja.Object) ([]byte, bool) {
	switch obj.ExportType() {
	case typeBuffer:
		if buf, ok := obj.Export().(goja.ArrayBuffer); ok {
			return buf.Bytes(), true
		}
	case typeByteArray:
		raw, ok := obj.Export().([]byte)
		return raw, ok
	}
	return nil, false
}

// bytesValue is a Uint8Array of b.
func (r *run) bytesValue(b []byte) (goja.Value, error) {
	rt := r.m.rt
	return rt.New(rt.Get("Uint8Array"), rt.ToValue(rt.NewArrayBuffer(b)))
}
