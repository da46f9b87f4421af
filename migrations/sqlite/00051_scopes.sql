-- What a token may do beside calling APIs: a JSON list of scopes, such as tasks:submit.

-- +goose Up
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE tokens DROP COLUMN scopes;
