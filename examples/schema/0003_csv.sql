-- +goose Up
CREATE TABLE csv_file (
    id       TEXT PRIMARY KEY,
    name     TEXT NOT NULL,
    body     TEXT NOT NULL,
    imported BIGINT NOT NULL DEFAULT 0,
    bad      BIGINT NOT NULL DEFAULT 0,
    notice   TEXT
);
CREATE TABLE csv_bad_line (
    file_id  TEXT NOT NULL REFERENCES csv_file (id),
    line     BIGINT NOT NULL,
    reason   TEXT NOT NULL
);

-- +goose Down
DROP TABLE csv_bad_line;
DROP TABLE csv_file;
