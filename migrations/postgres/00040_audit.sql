-- +goose Up

-- What administrators did that cannot be seen elsewhere. Rows are added and never changed.
-- Times are microseconds of UTC.
CREATE TABLE _apiengine_platform.audit (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    tenant  TEXT NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL
);
CREATE INDEX audit_tenant ON _apiengine_platform.audit (tenant, id);

-- +goose StatementBegin
CREATE FUNCTION _apiengine_platform.audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit rows are never changed or removed';
END $$;
-- +goose StatementEnd

CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON _apiengine_platform.audit
    FOR EACH STATEMENT EXECUTE FUNCTION _apiengine_platform.audit_stays();

-- +goose Down
DROP TABLE _apiengine_platform.audit;
DROP FUNCTION _apiengine_platform.audit_stays();
