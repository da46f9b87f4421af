-- +goose Up

-- The databases that scripts of a tenant reach as V8.Dbs.<name>, beside its own.
CREATE TABLE databases (
    tenant     TEXT NOT NULL REFERENCES tenants (name),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- +goose Down
DROP TABLE databases;
