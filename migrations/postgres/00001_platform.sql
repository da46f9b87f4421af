-- The platform's own tables, in a schema that no tenant's role can see. Times are
-- microseconds since 1970 (UTC). The schema itself is made before the first migration.
-- Names collate by their bytes, so that lists have the same order as on SQLite.

-- +goose Up
CREATE TABLE _apiengine_platform.counters (
    name  TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
-- Every change of a definition or a tenant takes the next revision; whoever takes it
-- keeps this row locked until the end of its transaction.
INSERT INTO _apiengine_platform.counters (name, value) VALUES ('revision', 1);

CREATE TABLE _apiengine_platform.tenants (
    name       TEXT COLLATE "C" PRIMARY KEY,
    settings   TEXT NOT NULL DEFAULT '{}',
    revision   BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
INSERT INTO _apiengine_platform.tenants (name, revision, created_at)
VALUES ('default', 1, (extract(epoch FROM now()) * 1000000)::bigint);

-- body is NULL in the version that a deletion makes.
CREATE TABLE _apiengine_platform.definition_versions (
    tenant    TEXT COLLATE "C" NOT NULL REFERENCES _apiengine_platform.tenants (name),
    key_lower TEXT COLLATE "C" NOT NULL,
    version   BIGINT NOT NULL,
    key       TEXT NOT NULL,
    revision  BIGINT NOT NULL,
    body      TEXT,
    saved_by  TEXT NOT NULL,
    saved_at  BIGINT NOT NULL,
    note      TEXT NOT NULL,
    PRIMARY KEY (tenant, key_lower, version)
);

-- The newest version of each definition.
CREATE TABLE _apiengine_platform.definitions (
    tenant    TEXT COLLATE "C" NOT NULL,
    key_lower TEXT COLLATE "C" NOT NULL,
    version   BIGINT NOT NULL,
    revision  BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (tenant, key_lower),
    FOREIGN KEY (tenant, key_lower, version) REFERENCES _apiengine_platform.definition_versions (tenant, key_lower, version)
);

-- sealed is a format byte, the nonce and the AES-256-GCM text.
CREATE TABLE _apiengine_platform.secrets (
    tenant     TEXT COLLATE "C" NOT NULL REFERENCES _apiengine_platform.tenants (name),
    name       TEXT COLLATE "C" NOT NULL,
    key_id     TEXT NOT NULL,
    sealed     BYTEA NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- tenant '' is a token for the whole platform. slot names the two admin tokens of which
-- there is at most one each: 'bootstrap' and 'configured'.
CREATE TABLE _apiengine_platform.tokens (
    id         TEXT PRIMARY KEY,
    hash       BYTEA NOT NULL,
    tenant     TEXT COLLATE "C" NOT NULL,
    name       TEXT NOT NULL,
    roles      TEXT NOT NULL,
    slot       TEXT UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX tokens_tenant ON _apiengine_platform.tokens (tenant, created_at);

-- +goose Down
DROP TABLE _apiengine_platform.tokens;
DROP TABLE _apiengine_platform.secrets;
DROP TABLE _apiengine_platform.definitions;
DROP TABLE _apiengine_platform.definition_versions;
DROP TABLE _apiengine_platform.tenants;
DROP TABLE _apiengine_platform.counters;
