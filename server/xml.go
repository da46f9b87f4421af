package server

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/url"

	"apiengine/fault"
)

// decodeXML gives the leaf elements of a document by their local names: what payment
// providers' callbacks need. A document type is refused, so there are no entities but
// XML's own five, and nothing outside is read.
func decodeXML(raw []byte) (body, error) {
	dec := xml.NewDecoder(bytes.NewReader(raw))
	w := leafWalker{fields: url.Values{}}
	for {
		tok, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			return w.end()
		}
		if err == nil {
			err = w.take(tok)
		}
		if err != nil {
			line, column := dec.InputPos()
			return body{}, refuse(fault.BadRequest, "the body is not valid XML at line %d, column %d: %s", line, column, xmlReason(err)).
				with(map[string]any{"Line": line, "Column": column})
		}
	}
}

func xmlReason(err error) string {
	var syn *xml.SyntaxError
	if errors.As(err, &syn) {
		return syn.Msg
	}
	return err.Error()
}

// leafWalker keeps the open elements; RawToken leaves their matching to it, and needs no
// recursion.
type leafWalker struct {
	fields url.Values
	open   []element
	done   bool
}

type element struct {
	name   xml.Name
	text   []byte
	parent bool // has elements of its own
}

func (w *leafWalker) take(tok xml.Token) error {
	switch t := tok.(type) {
	case xml.StartElement:
		return w.start(t.Name)
	case xml.EndElement:
		return w.close(t.Name)
	case xml.CharData:
		if len(w.open) > 0 {
			top := &w.open[len(w.open)-1]
			top.text = append(top.text, t...)
		} else if len(bytes.TrimSpace(bytes.TrimPrefix(t, mark))) > 0 {
			return errors.New("text outside the document's element")
		}
	case xml.Directive:
		return errors.New("a document type is not allowed")
	}
	return nil
}

func (w *leafWalker) start(name xml.Name) error {
	switch {
	case len(w.open) == 0 && w.done:
		return errors.New("a second element beside the document's")
	case len(w.open) >= maxDepth:
		return errors.New("nested too deep")
	case len(w.open) > 0:
		w.open[len(w.open)-1].parent = true
	}
	w.open = append(w.open, element{name: name})
	return nil
}

func (w *leafWalker) close(name xml.Name) error {
	last := len(w.open) - 1
	if last < 0 || w.open[last].name != name {
		return errors.New("unexpected </" + name.Local + ">")
	}
	e := &w.open[last]
	if !e.parent {
		w.fields.Add(e.name.Local, string(e.text))
	}
	w.open = w.open[:last]
	w.done = w.done || last == 0
	return nil
}

func (w *leafWalker) end() (body, error) {
	if len(w.open) > 0 {
		return body{}, refuse(fault.BadRequest, "the body is not valid XML: <%s> is not closed", w.open[len(w.open)-1].name.Local)
	}
	if !w.done {
		return body{}, refuse(fault.BadRequest, "the body is not valid XML: it has no element")
	}
	return body{fields: w.fields}, nil
}
