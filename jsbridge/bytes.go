package jsbridge

import (
	"fmt"

	"github.com/dop251/goja"
)

// bytes are a string's UTF-8, or what an ArrayBuffer or a view of one holds.
func (a argValue) bytes() ([]byte, error) {
	if goja.IsString(a.v) {
		return []byte(a.v.String()), nil
	}
	obj, ok := a.v.(*goja.Object)
	if !ok {
		v, err := a.plain()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("must be a string or bytes, not %s", got(v))
	}
	switch v := obj.Export().(type) {
	case goja.ArrayBuffer:
		return append([]byte{}, v.Bytes()...), nil
	case []byte:
		return append([]byte{}, v...), nil
	}
	return nil, fmt.Errorf("must be a string or bytes, not an object")
}

// bytesValue is a Uint8Array of b.
func (r *run) bytesValue(b []byte) (goja.Value, error) {
	rt := r.m.rt
	return rt.New(rt.Get("Uint8Array"), rt.ToValue(rt.NewArrayBuffer(b)))
}
