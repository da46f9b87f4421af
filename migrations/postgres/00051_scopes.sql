-- What a token may do beside calling APIs: a JSON list of scopes, such as tasks:submit.

-- +goose Up
ALTER TABLE _apiengine_platform.tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE _apiengine_platform.tokens DROP COLUMN scopes;
