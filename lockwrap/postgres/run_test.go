package postgres

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"apiengine/lockwrap"
)

func TestClassify(t *testing.T) {
	reply := func(severity, code string) error {
		return fmt.Errorf("query: %w", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity, Code: code})
	}
	for _, c := range []struct {
		what string
		err  error
		done bool // nothing was changed
	}{
		{"a missing right", reply("ERROR", "42501"), true},
		{"a statement's timeout", reply("ERROR", "57014"), true},
		{"a full disk", reply("ERROR", "53100"), true},
		{"a standby", reply("ERROR", "25006"), true},
		{"a shutdown, perhaps after the commit", reply("FATAL", "57P01"), false},
		{"a pooler that lost its server", reply("FATAL", "08P01"), false},
		{"a pooler that says so as an error", reply("ERROR", "08006"), false},
		{"a pooler with an error of its own", reply("ERROR", "58000"), false},
		{"a crash of another session", reply("WARNING", "57P02"), false},
		{"a cut connection", io.ErrUnexpectedEOF, false},
	} {
		var no *lockwrap.BackendError
		var unknown *lockwrap.UnknownError
		err := classify("acquire", c.err)
		if errors.As(err, &no) != c.done || errors.As(err, &unknown) == c.done || !errors.Is(err, c.err) {
			t.Errorf("%s: %T", c.what, err)
		}
	}
}
