package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/lockwrap"
)

// call is one script with what it is about.
type call struct {
	op     string
	script script
	lock   string
	args   []any
	keys   []string // after those of the lock
}

// run executes c by its digest, or with its text where the server does not know it yet.
func (b *Backend) run(ctx context.Context, c call) (lockwrap.Reply, string, error) {
	cmd := b.eval(ctx, c)
	if err := cmd.Err(); err != nil {
		return lockwrap.Reply{}, "", classify(c.op, err)
	}
	r, info, err := decode(cmd.Val())
	if err != nil {
		return r, "", &lockwrap.UnknownError{Op: c.op, Err: err}
	}
	return r, info, nil
}

func (b *Backend) eval(ctx context.Context, c call) *goredis.Cmd {
	cmd := b.do(ctx, c, "EVALSHA", c.script.digest)
	if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = b.do(ctx, c, "EVAL", c.script.text)
	}
	return cmd
}

func (b *Backend) do(ctx context.Context, c call, name, script string) *goredis.Cmd {
	args := make([]any, 0, 6+len(c.keys)+len(c.args))
	args = append(args, name, script, 3+len(c.keys), c.lock+":l", c.lock+":f", c.lock+":q")
	for _, k := range c.keys {
		args = append(args, k)
	}
	cmd := goredis.NewCmd(ctx, append(args, c.args...)...)
	cmd.SetFirstKeyPos(3)
	client := b.client
	if c.op == "confirm" || c.op == "renew" {
		client = b.alone
	}
	_ = client.Process(ctx, once{cmd}) // the command keeps its error
	return cmd
}

// once is a command that the client never sends twice, not even a cluster's after a cut
// connection: a repeated release would find its lock gone.
type once struct{ *goredis.Cmd }

// NoRetry tells the client.
func (once) NoRetry() bool { return true }

// decode reads a token or a life left, which mean yes, or the three values of a no.
func decode(val any) (r lockwrap.Reply, info string, err error) {
	switch v := val.(type) {
	case string:
		r.Held = true
		r.Token, err = strconv.ParseInt(v, 10, 64)
		return r, "", err
	case int64:
		if v < 0 { // somebody took the key's life away: it does not run out
			return lockwrap.Reply{Held: true, Left: 24 * time.Hour}, "", nil
		}
		return lockwrap.Reply{Held: true, Left: time.Duration(v) * time.Millisecond}, "", nil
	case []any:
		if len(v) == 2 {
			return handedOver(v)
		}
		if len(v) == 3 {
			token, ok1 := v[0].(string)
			left, ok2 := v[1].(int64)
			info, ok3 := v[2].(string)
			if ok1 && ok2 && ok3 {
				r.Token, _ = strconv.ParseInt(token, 10, 64) // not a number: somebody else's, so unknown
				r.Left = time.Duration(max(0, left)) * time.Millisecond
				return r, info, nil
			}
		}
	}
	return r, "", fmt.Errorf("unexpected reply %v", val)
}

// handedOver reads {token, token of the next holder}.
func handedOver(v []any) (r lockwrap.Reply, info string, err error) {
	token, ok1 := v[0].(string)
	next, ok2 := v[1].(string)
	if !ok1 || !ok2 {
		return r, "", fmt.Errorf("unexpected reply %v", v)
	}
	r.Held = true
	if r.Token, err = strconv.ParseInt(token, 10, 64); err == nil {
		r.Next, err = strconv.ParseInt(next, 10, 64)
	}
	return r, "", err
}

// classify says whether a failed command can have been executed. An error that the server
// sent comes from before a script's first write; a dial that failed or a pool without a free
// connection means that nothing was sent; about everything else nobody knows.
func classify(op string, err error) error {
	var reply goredis.Error
	var network *net.OpError
	switch {
	case errors.As(err, &reply),
		errors.As(err, &network) && network.Op == "dial",
		errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrPoolExhausted), errors.Is(err, goredis.ErrClosed):
		return &lockwrap.BackendError{Op: op, Err: err}
	}
	return &lockwrap.UnknownError{Op: op, Err: err}
}
