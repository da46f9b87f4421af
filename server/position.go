package server

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// lineColumn counts from 1; columns are characters.
func lineColumn(raw []byte, offset int) (line, column int) {
	before := raw[:min(offset, len(raw))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

func place(raw []byte, offset int) string {
	line, column := lineColumn(raw, offset)
	return fmt.Sprintf("line %d, column %d (byte %d)", line, column, offset)
}
