package jsbridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime/multipart"
	"net/url"
	"slices"
)

// files makes a multipart/form-data body of FilesByteBase64, whose names are those of the
// parts and of the files, behind the fields of the form.
func (r *HTTPRequest) files(name string, form url.Values, text json.RawMessage) error {
	var files map[string]string
	if err := json.Unmarshal(text, &files); err != nil || len(files) == 0 {
		return argErrorf("V8.%s: FilesByteBase64 must be {'name.txt': base64, ...}", name)
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body) // into memory: its errors cannot come
	for _, field := range slices.Sorted(maps.Keys(form)) {
		for _, v := range form[field] {
			_ = w.WriteField(field, v)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		content, err := base64.StdEncoding.DecodeString(files[file])
		if err != nil {
			return argErrorf("V8.%s: FilesByteBase64[%q] is not base64", name, file)
		}
		part, _ := w.CreateFormFile(file, file)
		_, _ = part.Write(content)
	}
	_ = w.Close()
	r.Body = body.Bytes()
	r.Header["Content-Type"] = w.FormDataContentType()
	return nil
}
