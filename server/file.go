package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"apiengine/engine"
)

// fileData is Data of a File answer.
type fileData struct {
	FileName       string
	ContentType    string
	FileByteBase64 *string
}

// fileAnswer is a file that can be sent.
type fileAnswer struct {
	ctype, disposition string
	content            []byte
}

// isFile reports whether a result of an API that answers with files is to be one: not
// what is no object, and not a business answer.
func isFile(res *engine.Result) bool {
	return res.ResponseType == "File" && res.Body != nil && !res.IsText && !business(res)
}

// readFile takes the file out of Data. Only images and PDF are shown inline: any other
// type could be a page that runs in this server's origin.
func readFile(res *engine.Result) (fileAnswer, *refusal) {
	var in struct{ Data fileData }
	if err := json.Unmarshal(res.Body, &in); err != nil || in.Data.FileByteBase64 == nil {
		return fileAnswer{}, invalid("a File answer needs Data.FileName, Data.ContentType and Data.FileByteBase64, all texts")
	}
	content, err := base64.StdEncoding.DecodeString(*in.Data.FileByteBase64)
	if err != nil {
		return fileAnswer{}, invalid("Data.FileByteBase64 is not base64: %v", err)
	}
	ctype, bad := fileType(in.Data.ContentType, content)
	return fileAnswer{ctype, disposition(ctype, in.Data.FileName), content}, bad
}

// magic are the first bytes of the types that a browser shows by itself.
var magic = map[string]func([]byte) bool{
	"application/pdf": startsWith("%PDF-"),
	"image/png":       startsWith("\x89PNG\r\n\x1a\n"),
	"image/jpeg":      startsWith("\xff\xd8\xff"),
	"image/gif":       func(b []byte) bool { return startsWith("GIF87a")(b) || startsWith("GIF89a")(b) },
	"image/bmp":       startsWith("BM"),
	"image/webp": func(b []byte) bool {
		return startsWith("RIFF")(b) && len(b) >= 12 && bytes.Equal(b[8:12], []byte("WEBP"))
	},
}

func startsWith(prefix string) func([]byte) bool {
	return func(b []byte) bool { return bytes.HasPrefix(b, []byte(prefix)) }
}

// fileType checks the declared type, and the content against it where it is known.
func fileType(declared string, content []byte) (string, *refusal) {
	if declared == "" {
		return "application/octet-stream", nil
	}
	media, args, err := mime.ParseMediaType(declared)
	if err != nil {
		return "", invalid("Data.ContentType %q is no media type", declared)
	}
	if media == "image/jpg" {
		media = "image/jpeg"
	}
	if is, ok := magic[media]; ok && !is(content) {
		return "", invalid("Data.FileByteBase64 is no %s: it begins with % x", media, content[:min(8, len(content))])
	}
	return mime.FormatMediaType(media, args), nil
}

// disposition is RFC 6266's header: an ASCII name for old clients, and the true one.
func disposition(ctype, name string) string {
	media, _, _ := strings.Cut(ctype, ";")
	kind := "attachment"
	if _, shown := magic[media]; shown {
		kind = "inline"
	}
	if name = safeName(name); name == "" {
		return kind
	}
	ascii := strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	out := fmt.Sprintf(`%s; filename="%s"`, kind, ascii)
	if ascii != name {
		out += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return out
}

// safeName is the last element of a name without control characters, at most 200 bytes.
func safeName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	for len(name) > 200 {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if name == "." || name == ".." {
		return ""
	}
	return name
}
