-- +goose Up

-- What a tenant may reach outside, narrower than the server's own rules; no row: no narrower.
CREATE TABLE _apiengine_platform.egress (
    tenant TEXT PRIMARY KEY REFERENCES _apiengine_platform.tenants (name),
    rules  TEXT NOT NULL
);

-- +goose Down
DROP TABLE _apiengine_platform.egress;
