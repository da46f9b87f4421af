package app

import "reflect"

// withLists returns v with an empty list where v has none at all, so that JSON readers
// always find a list where there may be one.
func withLists(v any) any {
	out := reflect.New(reflect.TypeOf(v)).Elem()
	out.Set(reflect.ValueOf(v))
	fillLists(out)
	return out.Interface()
}

func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillLists(v.Field(i))
			}
		}
	case reflect.Slice:
		bytes := v.Type().Elem().Kind() == reflect.Uint8 // text or JSON, where nothing means null
		if v.IsNil() && !bytes {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			if bytes {
				break
			}
			fillLists(v.Index(i))
		}
	}
}
