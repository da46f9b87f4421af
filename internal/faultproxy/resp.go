package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

var errFrame = errors.New("faultproxy: not RESP")

// readFrame appends the next RESP value, or the next line that is none (an inline command),
// to data.
func readFrame(r *bufio.Reader, data []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	data = append(data, line...)
	switch line[0] {
	case '$', '=', '!':
		n, err := size(line)
		if err != nil || n < 0 {
			return data, err
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(r, body)
		return append(data, body...), err
	case '*', '~', '>':
		return readFrames(r, data, line, 1, 0)
	case '%':
		return readFrames(r, data, line, 2, 0)
	case '|': // attributes come before the value that they are about
		return readFrames(r, data, line, 2, 1)
	}
	return data, nil
}

// readFrames reads the parts of an aggregate whose first line is given: per parts for each
// of its elements, and more beside.
func readFrames(r *bufio.Reader, data, line []byte, per, more int) ([]byte, error) {
	n, err := size(line)
	for i := 0; err == nil && i < n*per+more; i++ {
		data, err = readFrame(r, data)
	}
	return data, err
}

func size(line []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil || n > 1<<29 {
		return 0, fmt.Errorf("%w: %q", errFrame, line)
	}
	return n, nil
}

// args takes a command apart: an array of bulk strings, or an inline command.
func args(data []byte) (found [][]byte) {
	if data[0] != '*' {
		return bytes.Fields(data)
	}
	for _, rest, _ := bytes.Cut(data, []byte("\r\n")); len(rest) > 0; {
		line, body, _ := bytes.Cut(rest, []byte("\r\n"))
		n, err := size(line)
		if err != nil || n < 0 || len(body) < n+2 {
			return found
		}
		found = append(found, body[:n])
		rest = body[n+2:]
	}
	return found
}
