package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	goredislib "github.com/redis/go-redis/v9"
)

// server is a redis-server of this run's own.
type server struct {
	addr   string
	cmd    *exec.Cmd
	client *goredislib.Client
	dir    string
}

func startServer(program string) (*server, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: free.Addr().String()}
	free.Close()
	if s.dir, err = os.MkdirTemp("", "bench-locks"); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.client = goredislib.NewClient(&goredislib.Options{Addr: s.addr})
	for range 100 {
		if err = s.client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func (s *server) stop() {
	s.client.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	_ = s.cmd.Wait()
	os.RemoveAll(s.dir)
}

// info is one number of the server's INFO or its command statistics.
func (s *server) info(ctx context.Context, section, field string) (int64, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == field {
			var n int64
			_, err := fmt.Sscanf(strings.TrimPrefix(value, "calls="), "%d", &n)
			return n, err
		}
	}
	return 0, nil // a command never called has no line
}

// monitor counts the commands that clients send until stop is called; what a script calls
// inside the server and what sets up a connection is left out.
func (s *server) monitor() (stop func() int, err error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		conn.Close()
		return nil, err
	}
	lines := bufio.NewReaderSize(conn, 1<<20)
	if _, err := lines.ReadString('\n'); err != nil { // +OK
		conn.Close()
		return nil, err
	}
	count := make(chan int, 1)
	go func() {
		n := 0
		defer func() { count <- n }()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if sentByClient(line) {
				n++
			}
		}
	}()
	return func() int {
		conn.Close()
		return <-count
	}, nil
}

// sentByClient reads "+<time> [<db> <address or lua>] "command" ...".
func sentByClient(line string) bool {
	_, rest, ok := strings.Cut(line, "[")
	from, command, ok2 := strings.Cut(rest, `] "`)
	if !ok || !ok2 || strings.HasSuffix(from, " lua") {
		return false
	}
	command, _, _ = strings.Cut(strings.ToLower(command), `"`)
	return command != "hello" && command != "client"
}
