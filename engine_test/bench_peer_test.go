package engine_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	mrand "math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"
)

// The peers of the benchmarks: what a Go programmer would write by hand for the same
// answers. They run as processes of their own (the test binary run again).

func runPeer(kind string) {
	r := helloPeer()
	if kind == "locked" {
		p := newLockedPeer(os.Getenv("APIENGINE_TEST_REDIS"))
		r.Post("/apiengine/locked", p.serve)
	}
	log.Fatal(http.ListenAndServe(os.Getenv("APIENGINE_TEST_ADDR"), r))
}

func helloPeer() *chi.Mux {
	r := chi.NewRouter()
	r.Post("/apiengine/hello", func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"Code": 1, "Data": map[string]any{"Hello": "world"}})
	})
	return r
}

// lockedPeer acquires a lock with a token, reads a cached value and releases: three round
// trips, with the local queue by key that a careful programmer adds for hot ones.
type lockedPeer struct {
	c                *redis.Client
	acquire, release *redis.Script
	queues           sync.Map // product -> chan struct{} of one: whoever is in it talks to Redis, in order of arrival
}

func newLockedPeer(addr string) *lockedPeer {
	return &lockedPeer{
		c: redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64}),
		acquire: redis.NewScript(`
local v = redis.call('GET', KEYS[1])
if v then return {0, redis.call('PTTL', KEYS[1])} end
local f = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], f .. ':' .. ARGV[1], 'PX', ARGV[2])
return {f, 0}`),
		release: redis.NewScript(`
local v = redis.call('GET', KEYS[1])
if v == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`),
	}
}

func (p *lockedPeer) serve(w http.ResponseWriter, r *http.Request) {
	var in struct{ ProductId string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := context.WithoutCancel(r.Context())
	queue, _ := p.queues.LoadOrStore(in.ProductId, make(chan struct{}, 1))
	queue.(chan struct{}) <- struct{}{}
	defer func() { <-queue.(chan struct{}) }()
	lock := []string{"peer:{" + in.ProductId + "}:l", "peer:{" + in.ProductId + "}:f"}
	token, nonce, err := p.take(ctx, lock)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	value, err := p.c.Get(ctx, "peer:product:"+in.ProductId).Result()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	held, err := p.release.Run(ctx, p.c, lock, token+":"+nonce).Int()
	if err != nil || held == 0 {
		http.Error(w, "lock lost", http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"Code": 1, "Data": json.RawMessage(value)})
}

// take polls with jitter until the lock is free.
func (p *lockedPeer) take(ctx context.Context, lock []string) (token, nonce string, err error) {
	var raw [16]byte
	rand.Read(raw[:])
	nonce = hex.EncodeToString(raw[:])
	for {
		got, err := p.acquire.Run(ctx, p.c, lock, nonce, 5000).Int64Slice()
		if err != nil {
			return "", "", err
		}
		if got[0] > 0 {
			return strconv.FormatInt(got[0], 10), nonce, nil
		}
		time.Sleep(time.Millisecond + time.Duration(mrand.Int64N(int64(2*time.Millisecond))))
	}
}
