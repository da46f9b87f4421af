package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	goredis "github.com/redis/go-redis/v9"
)

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is the command line (contract.md section 8).
type commands struct {
	Config kong.ConfigFlag `name:"config" env:"APIENGINE_CONFIG" placeholder:"FILE" help:"YAML file of settings; flags and environment variables win over it."`

	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Migrate migrateCmd `cmd:"" help:"Bring the platform's database up to date, or show where it stands."`
	Check   checkCmd   `cmd:"" help:"Check the definition files of a folder; no server is needed."`
	Push    pushCmd    `cmd:"" help:"Send the definition files of a folder to a server."`
	Pull    pullCmd    `cmd:"" help:"Write a server's definitions into a folder."`
	Diff    diffCmd    `cmd:"" help:"Show what push would change."`
	Run     runCmd     `cmd:"" help:"Run an API as a test and show its answer and console."`
	Plan    planCmd    `cmd:"" help:"Show the lock, lease, wait and deadline that a call would have, and why."`
	Token   tokenCmd   `cmd:"" help:"Make, list and revoke tokens."`
	Tenant  tenantCmd  `cmd:"" help:"Make and list tenants, and say what each may reach."`
	Outbox  outboxCmd  `cmd:"" help:"List messages of the outbox, deliver them again, give them up."`
	Task    taskCmd    `cmd:"" help:"Order background tasks, list and follow them, cancel them, try them again."`
	Locks   locksCmd   `cmd:"" help:"Show the held locks, or take one away."`
	SQL     sqlCmd     `cmd:"" name:"sql" help:"Run one statement in a tenant's database."`
	Show    configCmd  `cmd:"" name:"config" help:"Show every setting and where it comes from; secrets are masked."`
	Types   typesCmd   `cmd:"" help:"Print apiengine.d.ts: what scripts can call, for editors."`
	Version versionCmd `cmd:"" help:"Show the version."`
}

// streams are what a command reads and writes.
type streams struct {
	out, err io.Writer
}

// Main runs the command line and returns the exit code: 0 ok, 1 failed, 2 usage. An
// interrupt or SIGTERM ends the command in an orderly way, a second one at once.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		signal.Stop(signals) // before anybody can see that the first was heard: the next has its default effect
		cancel()
		select {
		case second := <-signals:
			if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(second) != nil {
				os.Exit(exitFailed)
			}
		default:
		}
	}()
	return run(ctx, args, streams{stdout, stderr})
}

func run(ctx context.Context, args []string, io streams) int {
	goredis.SetLogger(redisLog{}) // its own words would break the log's form
	var c commands
	file, exited := &settingsFile{}, -1
	parser, err := kong.New(&c, kong.Name("apiengine"), kong.Writers(io.out, io.err),
		kong.Description("HTTP endpoints in JavaScript, each inside its own distributed lock."),
		kong.Exit(func(code int) { exited = code }), kong.Configuration(file.load), kong.Resolvers(file),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io, file))
	if err != nil {
		fmt.Fprintln(io.err, "apiengine:", err)
		return exitFailed
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exited
	}
	if err != nil {
		fmt.Fprintln(io.err, "apiengine:", usageText(err))
		return exitUsage
	}
	return exitCode(k.Run(parser), io.err)
}

// usageText says what is wrong with the command line and where to read on.
func usageText(err error) string {
	if f := (*fs.PathError)(nil); errors.As(err, &f) {
		return "--config " + err.Error()
	}
	help := "apiengine --help"
	if p := (*kong.ParseError)(nil); errors.As(err, &p) && p.Context.Selected() != nil {
		help = "apiengine " + p.Context.Selected().Path() + " --help"
	}
	return fmt.Sprintf("%v\n%q says more", err, help)
}

// exitCode reports an error and tells usage from failure.
func exitCode(err error, w io.Writer) int {
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintln(w, "apiengine:", err)
	}
	var s *SettingError
	if errors.As(err, &s) {
		return exitUsage
	}
	return exitFailed
}

// errReported is a failure that the command has already shown.
var errReported = errors.New("reported")

// redisLog drops what go-redis says by itself: each failure comes back as an error too.
type redisLog struct{}

// Printf implements go-redis's logger.
func (redisLog) Printf(context.Context, string, ...any) {}
