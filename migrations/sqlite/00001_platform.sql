-- The platform's own tables. Times are microseconds since 1970 (UTC).

-- +goose Up
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
-- Every change of a definition or a tenant takes the next revision; whoever takes it
-- keeps this row locked until the end of its transaction.
INSERT INTO counters (name, value) VALUES ('revision', 1);

CREATE TABLE tenants (
    name       TEXT PRIMARY KEY,
    settings   TEXT NOT NULL DEFAULT '{}',
    revision   INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO tenants (name, revision, created_at)
VALUES ('default', 1, CAST(strftime('%s', 'now') AS INTEGER) * 1000000);

-- body is NULL in the version that a deletion makes.
CREATE TABLE definition_versions (
    tenant    TEXT NOT NULL REFERENCES tenants (name),
    key_lower TEXT NOT NULL,
    version   INTEGER NOT NULL,
    key       TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    body      TEXT,
    saved_by  TEXT NOT NULL,
    saved_at  INTEGER NOT NULL,
    note      TEXT NOT NULL,
    PRIMARY KEY (tenant, key_lower, version)
);

-- The newest version of each definition.
CREATE TABLE definitions (
    tenant    TEXT NOT NULL,
    key_lower TEXT NOT NULL,
    version   INTEGER NOT NULL,
    revision  INTEGER NOT NULL UNIQUE,
    PRIMARY KEY (tenant, key_lower),
    FOREIGN KEY (tenant, key_lower, version) REFERENCES definition_versions (tenant, key_lower, version)
);

-- sealed is a format byte, the nonce and the AES-256-GCM text.
CREATE TABLE secrets (
    tenant     TEXT NOT NULL REFERENCES tenants (name),
    name       TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- tenant '' is a token for the whole platform. slot names the two admin tokens of which
-- there is at most one each: 'bootstrap' and 'configured'.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    roles      TEXT NOT NULL,
    slot       TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);
CREATE INDEX tokens_tenant ON tokens (tenant, created_at);

-- +goose Down
DROP TABLE tokens;
DROP TABLE secrets;
DROP TABLE definitions;
DROP TABLE definition_versions;
DROP TABLE tenants;
DROP TABLE counters;
