package jsbridge

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// names is an array of names.
func (m *machine) names(lists ...[]string) *goja.Object {
	var out []any
	for _, name := range slices.Concat(lists...) {
		out = append(out, name)
	}
	return m.rt.NewArray(out...)
}

// preludeHost is what prelude.js is given. Scripts never see it.
func (m *machine) preludeHost(frozen []any) *goja.Object {
	host := m.rt.NewObject()
	set := func(name string, f func(goja.FunctionCall) goja.Value) { _ = host.Set(name, m.native(name, f)) }
	_ = host.Set("roots", m.names(intrinsics, additions))
	_ = host.Set("absentTimers", m.names(absentTimers))
	_ = host.Set("noTimer", noTimer)
	_ = host.Set("frozen", m.rt.NewArray(frozen...))
	_ = host.Set("maxBuffer", maxBuffer)
	set("constant", func(call goja.FunctionCall) goja.Value {
		v := call.Argument(0)
		return m.native("get", func(goja.FunctionCall) goja.Value { return v })
	})
	m.setGuards(host)
	set("guard", func(call goja.FunctionCall) goja.Value {
		if err := m.guard(call.Argument(0).(*goja.Object)); err != nil {
			panic(err)
		}
		return goja.Undefined()
	})
	set("proxyDepth", func(call goja.FunctionCall) goja.Value { return m.rt.ToValue(proxyDepth(call.Argument(0))) })
	set("countProxy", func(goja.FunctionCall) goja.Value {
		m.countProxy()
		return goja.Undefined()
	})
	set("utf8Bytes", func(call goja.FunctionCall) goja.Value {
		return m.rt.ToValue(m.rt.NewArrayBuffer([]byte(call.Argument(0).String())))
	})
	set("utf8Text", func(call goja.FunctionCall) goja.Value {
		obj, _ := call.Argument(0).(*goja.Object)
		if obj == nil || obj.ExportType() != typeBuffer { // Export goes into nested values without an end
			panic(m.rt.NewTypeError("TextDecoder.decode: not a buffer"))
		}
		raw, _ := bufferOf(obj)
		text := strings.TrimPrefix(string(raw), "\ufeff")
		return m.rt.ToValue(strings.ToValidUTF8(text, string(utf8.RuneError)))
	})
	set("percentDecode", func(call goja.FunctionCall) goja.Value {
		return m.rt.ToValue(percentDecode(call.Argument(0).String()))
	})
	set("urlParse", m.urlParse)
	set("urlSet", m.urlSet)
	set("urlText", func(call goja.FunctionCall) goja.Value {
		return m.rt.ToValue(readURL(call.Argument(0)).String())
	})
	return host
}

// proxyDepth is how many proxies stand in one another's place, counted to 100.
func proxyDepth(v goja.Value) int {
	n := 0
	for n < 100 {
		obj, ok := v.(*goja.Object)
		if !ok || obj == nil || obj.ExportType() != typeProxy {
			return n
		}
		p, _ := obj.Export().(goja.Proxy)
		n++
		v = p.Target()
	}
	return n
}

// percentDecode decodes what it can and leaves the rest, as URLSearchParams does.
func percentDecode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError))
}

func (m *machine) urlParse(call goja.FunctionCall) goja.Value {
	text, base := call.Argument(0).String(), call.Argument(1).String()
	u, err := url.Parse(strings.TrimSpace(text))
	if err == nil && base != "" {
		var b *url.URL
		if b, err = url.Parse(base); err == nil {
			u = b.ResolveReference(u)
		}
	}
	if err != nil || u.Scheme == "" || webScheme(u.Scheme) && u.Host == "" {
		panic(m.rt.NewTypeError("Invalid URL: %s", text))
	}
	return m.urlParts(u)
}

func webScheme(s string) bool {
	return s == "http" || s == "https" || s == "ws" || s == "wss" || s == "ftp"
}

// urlParts is a URL as a plain object with the names of the URL class.
func (m *machine) urlParts(u *url.URL) goja.Value {
	obj := m.rt.NewObject()
	path := u.EscapedPath()
	if u.Opaque != "" {
		path = u.Opaque
	} else if path == "" && webScheme(u.Scheme) {
		path = "/"
	}
	password, _ := u.User.Password()
	port := u.Port()
	if port == map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}[u.Scheme] {
		port = ""
	}
	set := func(k, v string) { _ = obj.Set(k, v) }
	set("protocol", strings.ToLower(u.Scheme)+":")
	set("username", u.User.Username())
	set("password", password)
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	set("hostname", host)
	set("port", port)
	set("pathname", path)
	set("search", withMark("?", u.RawQuery))
	set("hash", withMark("#", u.EscapedFragment()))
	return obj
}

func withMark(mark, s string) string {
	if s == "" {
		return ""
	}
	return mark + s
}

// readURL builds the URL back from its parts.
func readURL(v goja.Value) *url.URL {
	obj, _ := v.(*goja.Object)
	part := func(name string) string { return orUndefined(obj.Get(name)).String() }
	u := &url.URL{Scheme: strings.TrimSuffix(part("protocol"), ":"), Host: part("hostname"),
		RawQuery: strings.TrimPrefix(part("search"), "?")}
	if port := part("port"); port != "" {
		u.Host += ":" + port
	}
	if name := part("username"); name != "" {
		u.User = url.User(name)
		if pw := part("password"); pw != "" {
			u.User = url.UserPassword(name, pw)
		}
	}
	path := part("pathname")
	if u.Host == "" && !strings.HasPrefix(path, "/") {
		u.Opaque = path
	} else if p, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = p, path
	}
	if f, err := url.PathUnescape(strings.TrimPrefix(part("hash"), "#")); err == nil {
		u.Fragment = f
	}
	return u
}

// urlSet changes one part; a value that cannot stand there changes nothing.
func (m *machine) urlSet(call goja.FunctionCall) goja.Value {
	old, part, value := call.Argument(0).(*goja.Object), call.Argument(1).String(), call.Argument(2).String()
	next := m.rt.NewObject()
	for _, k := range old.Keys() {
		_ = next.Set(k, old.Get(k))
	}
	switch part {
	case "protocol":
		value = strings.TrimSuffix(value, ":") + ":"
	case "pathname":
		if !strings.HasPrefix(value, "/") {
			value = "/" + value
		}
		value = (&url.URL{Path: value}).EscapedPath()
	case "search":
		value = withMark("?", strings.ReplaceAll(strings.TrimPrefix(value, "?"), " ", "%20"))
	case "hash":
		value = withMark("#", (&url.URL{Fragment: strings.TrimPrefix(value, "#")}).EscapedFragment())
	}
	_ = next.Set(part, value)
	u, err := url.Parse(readURL(next).String())
	if err != nil || u.Scheme == "" {
		return old
	}
	return m.urlParts(u)
}
