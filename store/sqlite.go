package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver
)

// sqliteReaders is how many statements read at the same time.
const sqliteReaders = 4

// openSQLite opens one writing connection, so that writers queue in this process instead
// of failing with SQLITE_BUSY, and several for reading.
func openSQLite(path, sync string) (read, write *sql.DB, err error) {
	sync = cmp.Or(sync, "full")
	if sync != "full" && sync != "normal" {
		return nil, nil, fmt.Errorf("store: Config.Sync is %q, want full or normal", sync)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, fmt.Errorf("store: Config.SQLitePath: %w", err)
	}
	if err := private(path); err != nil {
		return nil, nil, fmt.Errorf("store: Config.SQLitePath: %w", err)
	}
	// Another process (a command beside a running server) may hold the write lock for a
	// moment: wait for it. _txlock=immediate: a transaction that read first and wrote later
	// could not wait, it would have to fail.
	common := "_busy_timeout=5000&_journal_mode=WAL&_foreign_keys=1&_synchronous=" + sync
	if write, err = sql.Open("sqlite", dsn(path, common+"&_txlock=immediate")); err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}
	write.SetMaxOpenConns(1)
	if read, err = sql.Open("sqlite", dsn(path, common+"&_query_only=1")); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("store: %w", err), write.Close())
	}
	read.SetMaxOpenConns(sqliteReaders)
	read.SetMaxIdleConns(sqliteReaders)
	return read, write, nil
}

func dsn(path, query string) string {
	return (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: query}).String()
}

// private makes the file, readable by its owner alone, before SQLite would make it
// readable by all; SQLite gives its side files the same mode.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
