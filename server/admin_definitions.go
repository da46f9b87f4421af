package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"apiengine/apis"
	"apiengine/fault"
)

// Definitions stores what an administrator's clients read and write. Keys are found in
// any case. An unknown key or version is a not_found.
type Definitions interface {
	List(ctx context.Context, tenant string) ([]StoredDefinition, error)
	Get(ctx context.Context, tenant, key string) (StoredDefinition, error)
	// Save validates, compiles and stores; an error leaves the old version live. When
	// IfVersion does not hold it is a version_conflict.
	Save(ctx context.Context, s SaveRequest) (saved StoredDefinition, created bool, err error)
	Delete(ctx context.Context, s DeleteRequest) error
	Versions(ctx context.Context, tenant, key string) ([]StoredDefinition, error) // newest first
	Version(ctx context.Context, tenant, key string, version int) (StoredDefinition, error)
	// Rollback saves an old version again, as a new one.
	Rollback(ctx context.Context, r RollbackRequest) (StoredDefinition, error)
}

// StoredDefinition is one version of a definition.
type StoredDefinition struct {
	Definition apis.Definition
	Version    int
	SavedAt    time.Time
	SavedBy    string
	Note       string
	Deleted    bool // the version that took it away
}

// SaveRequest is one wish to save. IfVersion: nil no demand, 0 it must not exist, n the
// live version must be n.
type SaveRequest struct {
	Tenant     string
	Definition apis.Definition
	IfVersion  *int
	By         string
}

// DeleteRequest is one wish to delete; IfVersion as in SaveRequest.
type DeleteRequest struct {
	Tenant, Key string
	IfVersion   *int
	By          string
}

// RollbackRequest is one wish to make Version live again; IfVersion as in SaveRequest.
type RollbackRequest struct {
	Tenant, Key string
	Version     int
	IfVersion   *int
	By          string
}

type definitions struct{ port Definitions }

func definitionRoutes(p Definitions) []route {
	d := definitions{p}
	return []route{
		{http.MethodGet, "/definitions", RoleViewer, ofTenant, d.list},
		{http.MethodGet, "/definitions/{key}", RoleViewer, ofTenant, d.get},
		{http.MethodPut, "/definitions/{key}", RoleAuthor, ofTenant, d.put},
		{http.MethodDelete, "/definitions/{key}", RoleAuthor, ofTenant, d.delete},
		{http.MethodGet, "/definitions/{key}/versions", RoleViewer, ofTenant, d.versions},
		{http.MethodGet, "/definitions/{key}/versions/{version}", RoleViewer, ofTenant, d.version},
		{http.MethodPost, "/definitions/{key}/rollback", RoleAuthor, ofTenant, d.rollback},
	}
}

func (d definitions) list(c *adminCall) (answer, error) {
	all, err := d.port.List(c.ctx, c.tenant)
	return shown(all, err)
}

func (d definitions) get(c *adminCall) (answer, error) {
	one, err := d.port.Get(c.ctx, c.tenant, c.param("key"))
	return shownOne(one, err)
}

func (d definitions) put(c *adminCall) (answer, error) {
	demand, err := ifVersion(c.x.r.Header)
	if err != nil {
		return answer{}, err
	}
	raw, err := c.rawBody()
	if err != nil {
		return answer{}, err
	}
	def, err := apis.DecodeJSON(raw)
	if err != nil {
		return answer{}, err
	}
	key := c.param("key")
	switch {
	case def.ApiEngineKey == "":
		def.ApiEngineKey = key
	case !strings.EqualFold(def.ApiEngineKey, key):
		return answer{}, refuse(fault.BadRequest, "the body's ApiEngineKey is %q, the address says %q", def.ApiEngineKey, key).
			with(map[string]any{"Field": "ApiEngineKey"})
	}
	saved, created, err := d.port.Save(c.ctx, SaveRequest{Tenant: c.tenant, Definition: def, IfVersion: demand, By: c.by()})
	a, err := shownOne(saved, err)
	if created {
		a.status = http.StatusCreated
	}
	return a, err
}

func (d definitions) delete(c *adminCall) (answer, error) {
	demand, err := ifVersion(c.x.r.Header)
	if err != nil {
		return answer{}, err
	}
	return answer{}, d.port.Delete(c.ctx, DeleteRequest{Tenant: c.tenant, Key: c.param("key"), IfVersion: demand, By: c.by()})
}

func (d definitions) versions(c *adminCall) (answer, error) {
	all, err := d.port.Versions(c.ctx, c.tenant, c.param("key"))
	return shown(all, err)
}

func (d definitions) version(c *adminCall) (answer, error) {
	n, err := c.number("version")
	if err != nil {
		return answer{}, err
	}
	one, err := d.port.Version(c.ctx, c.tenant, c.param("key"), n)
	a, err := shownOne(one, err)
	return a, err
}

func (d definitions) rollback(c *adminCall) (answer, error) {
	demand, err := ifVersion(c.x.r.Header)
	if err != nil {
		return answer{}, err
	}
	var in struct{ Version int }
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	if in.Version < 1 {
		return answer{}, refuse(fault.BadRequest, "Version must be a whole number from 1").with(map[string]any{"Field": "Version"})
	}
	saved, err := d.port.Rollback(c.ctx, RollbackRequest{
		Tenant: c.tenant, Key: c.param("key"), Version: in.Version, IfVersion: demand, By: c.by(),
	})
	return shownOne(saved, err)
}

// by is who a change is recorded for.
func (c *adminCall) by() string {
	if c.id.Name != "" {
		return c.id.Name + " (" + c.id.ID + ")"
	}
	return c.id.ID
}

func shownOne(s StoredDefinition, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	text, err := s.json()
	return answer{data: text, etag: strconv.Itoa(s.Version)}, err
}

func shown(all []StoredDefinition, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	out := make([]json.RawMessage, len(all))
	for i, s := range all {
		if out[i], err = s.json(); err != nil {
			return answer{}, err
		}
	}
	return answer{data: out}, nil
}

// json is the definition's own JSON with Version and who saved it when.
func (s StoredDefinition) json() (json.RawMessage, error) {
	text, err := apis.EncodeJSON(s.Definition)
	if err != nil {
		return nil, err
	}
	more, err := json.Marshal(struct {
		Version int
		SavedAt time.Time
		SavedBy string
		Note    string `json:",omitempty"`
		Deleted bool   `json:",omitempty"`
	}{s.Version, s.SavedAt.UTC(), s.SavedBy, s.Note, s.Deleted})
	if err != nil {
		return nil, err
	}
	text = bytes.TrimRight(text, " \t\r\n")
	out := append(bytes.Clone(text[:len(text)-1]), ',')
	return append(out, more[1:]...), nil
}
