-- +goose Up

-- What a tenant may reach outside, narrower than the server's own rules; no row: no narrower.
CREATE TABLE egress (
    tenant TEXT PRIMARY KEY REFERENCES tenants (name),
    rules  TEXT NOT NULL
);

-- +goose Down
DROP TABLE egress;
