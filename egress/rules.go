package egress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"apiengine/fault"
)

// Rules narrow what one tenant may reach; they let nothing out that Config does not. The
// zero value narrows nothing.
type Rules struct {
	Mode  Mode
	Allow []string // of ModeList: scheme://host or scheme://host:port
}

// Mode is how far a tenant may reach.
type Mode string

// The modes. An empty one is ModePublic.
const (
	ModePublic Mode = "public" // whatever Config lets out
	ModeList   Mode = "list"   // of that, only what Allow names
	ModeOff    Mode = "off"    // nothing
)

// ParseRules reads {"Mode", "Allow"} and brings each entry into the form in which it is
// compared. Empty text is the zero Rules. The error is bad_request and names the entry.
func ParseRules(text json.RawMessage) (r Rules, err error) {
	if len(text) == 0 {
		return Rules{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Rules{}, fault.Wrap(fault.BadRequest, err, `the rules must be {"Mode": "public", "list" or "off", "Allow": [...]}`)
	}
	switch r.Mode {
	case "":
		r.Mode = ModePublic
	case ModePublic, ModeList, ModeOff:
	default:
		return Rules{}, fault.New(fault.BadRequest, "Mode is %.40q, it must be public, list or off", r.Mode)
	}
	if r.Mode != ModeList && len(r.Allow) > 0 {
		return Rules{}, fault.New(fault.BadRequest, "Allow belongs to the Mode list")
	}
	for i, entry := range r.Allow {
		if r.Allow[i], err = parseOrigin(entry); err != nil {
			return Rules{}, err
		}
	}
	return r, nil
}

func parseOrigin(entry string) (string, error) {
	u, err := url.Parse(entry)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(u.Host, "*% ") {
		return "", fault.New(fault.BadRequest, "%.100q in Allow must be like https://api.example.com or https://api.example.com:8443", entry)
	}
	return origin(u), nil
}

// origin is scheme, host and port in the form in which they are compared.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(canonical(u.Hostname()), port)
}

// permit reports a *RefusedError for what the rules do not let out.
func (r Rules) permit(u *url.URL) error {
	switch {
	case r.Mode == ModeOff:
		return &RefusedError{What: u.Host, Why: "this tenant sends nothing outside"}
	case r.Mode == ModeList && !slices.Contains(r.Allow, origin(u)):
		return &RefusedError{What: u.Host, Why: fmt.Sprintf("%s is not on the list of what this tenant may reach", origin(u))}
	}
	return nil
}
