-- +goose Up
CREATE TABLE job_state (
    job_id      TEXT PRIMARY KEY,
    status      TEXT NOT NULL,
    owner_token BIGINT NOT NULL DEFAULT 0,
    result      TEXT
);
INSERT INTO job_state (job_id, status) VALUES ('J1', 'READY'), ('J2', 'READY'), ('J3', 'DONE');

-- +goose Down
DROP TABLE job_state;
