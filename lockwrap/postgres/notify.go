package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	quiet  = 3 * time.Second // how long a connection may say nothing before it is asked whether it lives
	recall = time.Minute     // for how long an address counts as a pooler's without another look
)

var errPooled = errors.New("postgres: no notices through a connection pooler; give an address of the server itself")

// channel is what a node listens to: names of channels are shorter than those of nodes.
func channel(node string) string {
	sum := sha256.Sum256([]byte(node))
	return "lockwrap_" + hex.EncodeToString(sum[:])[:40]
}

// Notify is lockwrap.Backend's. It keeps one connection. Where the address leads to a pooler
// it returns an error: LISTEN would be the business of whatever session happens to run it.
func (b *Backend) Notify(ctx context.Context, node string, hear func(lock string)) error {
	if time.Since(time.Unix(b.pooled.Load(), 0)) < recall {
		return errPooled
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.work, cancel)()
	err := b.listening(ctx, node, hear)
	if ctx.Err() != nil && b.work.Err() == nil {
		return nil
	}
	if errors.Is(err, errPooled) {
		b.pooled.Store(time.Now().Unix())
		return err
	}
	return fmt.Errorf("postgres: the subscription ended: %w", err)
}

func (b *Backend) listening(ctx context.Context, node string, hear func(lock string)) error {
	conn, err := pgx.ConnectConfig(ctx, b.listen.Copy())
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(last) // it has nothing that could get lost
	}()
	if direct, err := isDirect(ctx, conn); err != nil {
		return err
	} else if !direct {
		return errPooled
	}
	if _, err := conn.Exec(ctx, "LISTEN "+channel(node)); err != nil {
		return err
	}
	hear("")
	for {
		lock, err := next(ctx, conn)
		if err != nil {
			return err
		}
		if lock != "" {
			hear(lock)
		}
	}
}

// next waits for a notice. It returns an empty one when nothing came but the server lives.
func next(ctx context.Context, conn *pgx.Conn) (lock string, err error) {
	short, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	n, err := conn.WaitForNotification(short)
	switch {
	case err == nil:
		return n.Payload, nil
	case ctx.Err() != nil || !pgconn.Timeout(err):
		return "", err
	}
	alive, cancel2 := context.WithTimeout(ctx, quiet)
	defer cancel2()
	return "", conn.Ping(alive)
}
