package jsbridge

import (
	"math/big"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
)

// The engine shows places as they are in the text that it was given, in error.stack too. That
// text has the head of a function in front of the script, and counts columns in bytes. So the
// places in the tree are moved once, before it is compiled, to where they are in the author's
// text with its columns in UTF-16 units. Lowered code has a source map instead.

// settle moves every place of tree, whose text is code with head put in at lead. Afterwards
// what the engine tells is the author's place.
func (p *positions) settle(tree *ast.Program, code string, lead, head int) {
	p.settled = true
	ascii := isASCII(code)
	if ascii && p.firstLine > 1 { // the head stands on a line of its own
		return
	}
	text, base := code, tree.File.Base()
	move := func(at int) int { // of an offset in code
		return at
	}
	if !ascii {
		text, move = inUnits(code)
	}
	seen := map[uintptr]bool{}
	eachPlace(reflect.ValueOf(tree.Body), seen, func(idx file.Idx) file.Idx {
		at := int(idx) - base
		if at > lead {
			at = max(lead, at-head)
		}
		return file.Idx(base + move(min(at, len(code))))
	})
	tree.File = file.NewFile(tree.File.Name(), text, base)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// inUnits is text with a letter for each UTF-16 unit, and the way from an offset in text to
// the one there.
func inUnits(text string) (units string, move func(int) int) {
	var b strings.Builder
	at := make([]int, len(text)+1)
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		for j := range size {
			at[i+j] = b.Len()
		}
		switch {
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r > 0xffff:
			b.WriteString("xx")
		default:
			b.WriteByte('x')
		}
	}
	at[len(text)] = b.Len()
	return b.String(), func(i int) int { return at[i] }
}

// eachPlace replaces every place below v.
func eachPlace(v reflect.Value, seen map[uintptr]bool, move func(file.Idx) file.Idx) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			eachPlace(v.Elem(), seen, move)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type() == reflect.TypeFor[*big.Int]() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		eachPlace(v.Elem(), seen, move)
	case reflect.Slice:
		for i := range v.Len() {
			eachPlace(v.Index(i), seen, move)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			switch {
			case !f.CanInterface() || v.Type().Field(i).Name == "DeclarationList":
			case f.Type() != reflect.TypeFor[file.Idx]():
				eachPlace(f, seen, move)
			case f.Int() > 0:
				f.SetInt(int64(move(file.Idx(f.Int()))))
			}
		}
	}
}
