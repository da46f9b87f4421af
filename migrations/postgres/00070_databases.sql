-- +goose Up

-- The databases that scripts of a tenant reach as V8.Dbs.<name>, beside its own.
CREATE TABLE _apiengine_platform.databases (
    tenant     TEXT NOT NULL REFERENCES _apiengine_platform.tenants (name),
    name       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- +goose Down
DROP TABLE _apiengine_platform.databases;
