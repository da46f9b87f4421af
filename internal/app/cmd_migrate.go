package app

import (
	"context"
	"fmt"
	"strings"
)

// migrateCmd brings the platform's database up to date without serving.
type migrateCmd struct {
	DataDir     string `default:"./data" env:"APIENGINE_DATA_DIR" help:"Folder of the embedded database."`
	DatabaseURL string `name:"database-url" env:"APIENGINE_DATABASE_URL" secret:"url" help:"PostgreSQL. None: SQLite in data-dir."`
	JSON        bool   `name:"json" help:"Print JSON."`
}

// migrated is what the database looks like now.
type migrated struct {
	Applied []string
	Pending []string
}

func (m migrated) String() string {
	var b strings.Builder
	for _, name := range m.Applied {
		fmt.Fprintf(&b, "applied  %s\n", name)
	}
	for _, name := range m.Pending {
		fmt.Fprintf(&b, "pending  %s\n", name)
	}
	return b.String()
}

// Run implements the command.
func (c *migrateCmd) Run(ctx context.Context, io streams) error {
	s := Defaults()
	s.DataDir, s.DatabaseURL = c.DataDir, c.DatabaseURL
	if err := s.Check(); err != nil {
		return err
	}
	a := &App{Settings: s, Log: NewLog(s, io.err)}
	defer a.Close(context.WithoutCancel(ctx))
	for _, step := range []func(context.Context) error{a.openDataDir, a.openStore} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	applied, pending, err := a.Store.Migrations(ctx)
	return show(io, c.JSON, migrated{append([]string{}, applied...), append([]string{}, pending...)}, err)
}
