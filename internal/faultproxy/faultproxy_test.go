package faultproxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// line is a Redis with a proxy before it, a client that goes through and one that does not.
func line(t *testing.T) (p *faultproxy.Proxy, through, direct *redis.Client, key string) {
	t.Helper()
	s := testserver.Redis(t)
	addr := "127.0.0.1:" + strconv.Itoa(s.Port)
	p = faultproxy.New(t, faultproxy.Config{Target: addr})
	o := redis.Options{MaxRetries: -1, ReadTimeout: 200 * time.Millisecond, PoolSize: 1, Protocol: 3, ContextTimeoutEnabled: true}
	direct = redis.NewClient(&redis.Options{Addr: addr})
	o.Addr = p.Addr()
	through = redis.NewClient(&o)
	t.Cleanup(func() { through.Close(); direct.Close() })
	key = t.Name()
	if err := through.Set(t.Context(), key, "0", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return p, through, direct, key
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault faultproxy.Fault
		done  bool // by the server, although the client hears nothing
		cut   bool // the client hears at once that the line is gone
	}{
		{"the reply is lost", faultproxy.LoseReply, true, true},
		{"the call is lost", faultproxy.LoseCall, false, true},
		{"the reply never comes", faultproxy.MuteReply, true, false},
		{"the call never arrives", faultproxy.MuteCall, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, through, direct, key := line(t)
			trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("INCR"), Skip: 1, Times: 1, Fault: c.fault})
			if err := through.Incr(t.Context(), key).Err(); err != nil {
				t.Fatalf("the first, which passes: %v", err)
			}
			err := through.Incr(t.Context(), key).Err()
			var network net.Error
			if timeout := errors.As(err, &network) && network.Timeout(); err == nil || timeout == c.cut {
				t.Errorf("got %v", err)
			}
			<-trap.Seen()
			want := "1"
			if c.done {
				want = "2"
			}
			if got := direct.Get(t.Context(), key).Val(); got != want {
				t.Errorf("the key is %s, want %s", got, want)
			}
			if err := through.Incr(t.Context(), key).Err(); err != nil || trap.Left() != 0 {
				t.Errorf("the one after: %v, %d left", err, trap.Left())
			}
		})
	}
}

func TestWhatIsHeldGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faultproxy.Fault
		before string
	}{"reply": {faultproxy.HoldReply, "1"}, "call": {faultproxy.HoldCall, "0"}} {
		t.Run(name, func(t *testing.T) {
			p, through, direct, key := line(t)
			trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("INCR"), Fault: c.fault})
			if err := through.Incr(t.Context(), key).Err(); err == nil {
				t.Error("no time-out")
			}
			<-trap.Seen()
			if got := direct.Get(t.Context(), key).Val(); got != c.before {
				t.Errorf("while held the key is %s, want %s", got, c.before)
			}
			trap.Release()
			await(t, func() bool { return direct.Get(t.Context(), key).Val() == "1" })
			if err := through.Incr(t.Context(), key).Err(); err != nil {
				t.Errorf("after the release: %v", err)
			}
		})
	}
}

// In a pipeline each reply belongs to its own command. What follows the lost one may have
// been on its way already, or not.
func TestRepliesAreCounted(t *testing.T) {
	p, through, direct, key := line(t)
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains("bad"), Times: 1, Fault: faultproxy.LoseReply})
	pipe := through.Pipeline()
	pipe.HGetAll(t.Context(), "nobody")
	good := pipe.Append(t.Context(), key, "good")
	bad := pipe.Append(t.Context(), key, "bad")
	late := pipe.Append(t.Context(), key, "late")
	_, err := pipe.Exec(t.Context())
	if err == nil || good.Val() != 5 || bad.Val() != 0 || late.Val() != 0 || trap.Count() != 1 {
		t.Errorf("%v; %v; %v; %v; %d", err, good, bad, late, trap.Count())
	}
	await(t, func() bool { return strings.HasPrefix(direct.Get(t.Context(), key).Val(), "0goodbad") })
}

func TestAnUnknownScriptIsNotCounted(t *testing.T) {
	p, through, _, key := line(t)
	script := redis.NewScript("return redis.call('APPEND', KEYS[1], '" + key + strconv.FormatInt(time.Now().UnixNano(), 36) + "')")
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Script(key), Times: 1, Fault: faultproxy.LoseReply})
	if err := script.Run(t.Context(), through, []string{key}).Err(); err == nil || trap.Count() != 1 {
		t.Errorf("%v after %d", err, trap.Count())
	}
	if err := script.Run(t.Context(), through, []string{key}).Err(); err != nil {
		t.Error(err)
	}
}

func TestTheWholeLine(t *testing.T) {
	p, through, direct, key := line(t)
	incr := func(want string) {
		t.Helper()
		if err := through.Incr(t.Context(), key).Err(); err != nil {
			t.Error(err)
		}
		if got := direct.Get(t.Context(), key).Val(); got != want {
			t.Errorf("the key is %s, want %s", got, want)
		}
	}
	fails := func(what string) {
		t.Helper()
		if err := through.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	p.Refuse(true)
	fails("refused")
	p.Refuse(false)
	incr("1")
	p.BlackHole(true)
	fails("a black hole")
	p.BlackHole(false)
	incr("2")
	p.Hold(faultproxy.ToClient)
	if err := through.Incr(t.Context(), key).Err(); err == nil {
		t.Error("held back: no error")
	}
	await(t, func() bool { return direct.Get(t.Context(), key).Val() == "3" })
	p.Resume(faultproxy.ToClient)
	incr("4")
	p.Retarget("127.0.0.1:1")
	fails("another target")
}

func TestHalfClose(t *testing.T) {
	p, _, direct, key := line(t)
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	io.WriteString(c, "INCR "+key+"\r\n")
	if got, err := r.ReadString('\n'); got != ":1\r\n" {
		t.Fatal(got, err)
	}
	p.HalfClose()
	if got, err := r.ReadString('\n'); err != io.EOF {
		t.Errorf("read %q, %v", got, err)
	}
	io.WriteString(c, "INCR "+key+"\r\n")
	await(t, func() bool { return direct.Get(t.Context(), key).Val() == "2" })
}

// Pushed messages are not taken for replies.
func TestSubscriptionsPass(t *testing.T) {
	p, through, direct, key := line(t)
	p.Add(faultproxy.Rule{Match: faultproxy.Command("PUBLISH"), Times: 1, Fault: faultproxy.LoseReply})
	sub := through.Subscribe(t.Context(), key)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		direct.Publish(t.Context(), key, i)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		m, err := sub.ReceiveMessage(ctx)
		cancel()
		if err != nil || m.Payload != strconv.Itoa(i) {
			t.Fatal(m, err)
		}
	}
}

// A protocol that is not RESP goes by chunks.
func TestChunks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			for line, err := r.ReadString('\n'); err == nil; line, err = r.ReadString('\n') {
				got <- line
				io.WriteString(c, "ok "+line)
			}
			c.Close()
		}
	}()
	p := faultproxy.New(t, faultproxy.Config{Target: l.Addr().String(), Chunks: true})
	p.Add(faultproxy.Rule{Match: faultproxy.Contains("COMMIT"), Times: 1, Fault: faultproxy.LoseReply})
	say := func(text string) (string, error) {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text)
		return bufio.NewReader(c).ReadString('\n')
	}
	for _, c := range []struct {
		text, want string
	}{{"BEGIN\n", "ok BEGIN\n"}, {"COMMIT\n", ""}, {"COMMIT\n", "ok COMMIT\n"}} {
		if reply, err := say(c.text); reply != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.text, reply, err)
		}
		if text := <-got; text != c.text {
			t.Errorf("the server got %q", text)
		}
	}
}

// Frames of every kind go through unharmed and are told apart.
func TestFrames(t *testing.T) {
	replies := []string{"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\na\r\nb\n\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:2\r\n", "%1\r\n+a\r\n:1\r\n", "~2\r\n:1\r\n:2\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
		"=7\r\ntxt:abc\r\n", "|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for _, reply := range replies {
			if _, err := r.ReadString('\n'); err != nil { // inline commands
				return
			}
			io.WriteString(c, reply)
		}
		io.Copy(io.Discard, c)
	}()
	p := faultproxy.New(t, faultproxy.Config{Target: l.Addr().String()})
	watch := p.Add(faultproxy.Rule{Fault: faultproxy.Watch})
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, want := range replies {
		io.WriteString(c, "PING "+strconv.Itoa(i)+"\r\n")
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !slices.Equal(got, []byte(want)) {
			t.Fatalf("%q came as %q: %v", want, got, err)
		}
		<-watch.Seen()
	}
	if watch.Count() != len(replies) {
		t.Errorf("%d requests counted of %d", watch.Count(), len(replies))
	}
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !ok(); <-tick.C {
		if time.Since(began) > 10*time.Second {
			t.Fatal("not within 10 s")
		}
	}
}
