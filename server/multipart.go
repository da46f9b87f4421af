package server

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"path"
	"strings"

	"apiengine/fault"
)

// maxParts of one form.
const maxParts = 1000

// decodeMultipart reads fields and files. A file is known by its file name, without
// folders, else by its field's; a second one of the same name becomes "name (2).ext".
func decodeMultipart(boundary string, raw []byte) (body, error) {
	if boundary == "" {
		return body{}, refuse(fault.BadRequest, "multipart/form-data needs a boundary in its Content-Type")
	}
	out := body{fields: url.Values{}}
	r := multipart.NewReader(bytes.NewReader(raw), boundary)
	for n := 1; ; n++ {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return body{}, badForm(n, err)
		}
		if n > maxParts {
			return body{}, refuse(fault.BadRequest, "the form has more than %d parts", maxParts)
		}
		if err := out.addPart(part); err != nil {
			return body{}, badForm(n, err)
		}
	}
}

func badForm(part int, err error) error {
	return refuse(fault.BadRequest, "part %d of the form cannot be read: %v", part, err)
}

func (b *body) addPart(part *multipart.Part) error {
	name := part.FormName()
	if name == "" {
		return errors.New("it has no name")
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return err
	}
	if file := part.FileName(); file != "" || namesFile(part) {
		if b.files == nil {
			b.files = map[string]string{}
		}
		if file == "" {
			file = name
		}
		b.files[b.freeName(file)] = base64.StdEncoding.EncodeToString(content)
		return nil
	}
	b.fields.Add(name, string(content))
	return nil
}

// namesFile: a part whose header has a filename, be it empty, is a file.
func namesFile(part *multipart.Part) bool {
	return strings.Contains(strings.ToLower(part.Header.Get("Content-Disposition")), "filename=")
}

func (b *body) freeName(file string) string {
	ext := path.Ext(file)
	name := file
	for n := 2; ; n++ {
		if _, taken := b.files[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(file, ext), n, ext)
	}
}
