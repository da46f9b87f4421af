package jsbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// kilobyte is an object of about 1 KB of JSON.
func kilobyte() string {
	var items []string
	for i := range 12 {
		items = append(items, fmt.Sprintf(`{"Id":%d,"Name":"product %d","Price":%d.5,"Tags":["a","b"],"Stock":%d}`, i, i, i*10, i*3))
	}
	return `{"OrderId":"o-1","Qty":3,"Items":[` + strings.Join(items, ",") + `]}`
}

func benchRun(b *testing.B, code string, change func(*Env)) {
	br := newBridge(b, Config{})
	p := compile(b, code)
	e := env()
	e.Limits.Deadline = time.Now().Add(time.Hour)
	if change != nil {
		change(e)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := br.Run(context.Background(), p, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	param := func(e *Env) { e.Param = json.RawMessage(kilobyte()) }
	cached := func(e *Env) { e.Cache = &memCache{strings: map[string]string{"k": kilobyte()}} }
	b.Run("trivial", func(b *testing.B) { benchRun(b, `return {Code:1, Data:{Hello:'world'}}`, nil) })
	b.Run("param_untouched", func(b *testing.B) { benchRun(b, `return {Code:1}`, param) })
	b.Run("param_touched", func(b *testing.B) {
		benchRun(b, `var p = V8.Param; return {Code:1, Data:[p.OrderId, p.Qty, p.Items[3].Name]}`, param)
	})
	b.Run("cached_passed_on", func(b *testing.B) {
		benchRun(b, `return {Code:1, Data:JSON.parse(V8.Cache.Get('k'))}`, cached)
	})
	b.Run("cached_touched", func(b *testing.B) {
		benchRun(b, `var d = JSON.parse(V8.Cache.Get('k')); return {Code:1, Data:d, N:d.Items.length}`, cached)
	})
	b.Run("cache_get", func(b *testing.B) { benchRun(b, `return V8.Cache.Get('none')`, cached) })
	b.Run("built_ins", func(b *testing.B) {
		benchRun(b, `var n = 0, s = []; for (var i = 0; i < 1000; i++) { n += Math.floor(i / 3); s.push(String(i).padStart(5, '0').replace('0', 'x').split('').reverse().join('')); }
			return s.map(x => x.length).filter(x => x > 1).reduce((a, b) => a + b, n)`, nil)
	})
	b.Run("spreads", func(b *testing.B) {
		benchRun(b, `var o = {a: 1, b: 2}, l = [1, 2, 3], n = 0; for (var i = 0; i < 300; i++) { var {a, ...r} = {...o, i: i}; n += Math.max(...l) + r.i + `+"`${a}-${i}-${n}`"+`.length; for (var x of l) n += x; } return n`, nil)
	})
}

// BenchmarkAddition is a turn of a loop with and without a guard on its addition.
func BenchmarkAddition(b *testing.B) {
	for _, c := range []struct{ name, step string }{{"looked_at", "n += l[0]"}, {"subtraction", "n -= l[0]"}, {"counter", "n += i"}} {
		b.Run(c.name, func(b *testing.B) {
			const turns = 1_000_000
			benchRun(b, fmt.Sprintf("var n = 0, l = [1]; for (var i = 0; i < %d; i++) %s; return n", turns, c.step), nil)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/turns, "ns/turn")
		})
	}
}

func BenchmarkNewMachine(b *testing.B) {
	br := newBridge(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newMachine(br, "t"); err != nil {
			b.Fatal(err)
		}
	}
}
