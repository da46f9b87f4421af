package jsbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dop251/goja"
)

// jsonContests are loops of nothing but JSON, the same for the engine bare and for a run.
// Each touches what it parsed.
var jsonContests = []struct{ name, code string }{
	{"parse", `for (var i = 0; i < n; i++) sum += JSON.parse(text).Items.length`},
	{"stringify", `var value = JSON.parse(text); value.Items.length; for (var i = 0; i < n; i++) sum += JSON.stringify(value).length`},
	{"stringify own", `var value = {Items: []}, from = JSON.parse(text).Items; for (var i = 0; i < from.length; i++) { var x = from[i]; value.Items.push({Id: x.Id, Name: x.Name, Price: x.Price, Tags: ['a', 'b'], Stock: x.Stock}); }
		for (var i = 0; i < n; i++) sum += JSON.stringify(value).length`},
}

const (
	jsonTurns = 20 // of each
	jsonTurn  = 20 * time.Millisecond
	jsonLeast = 20 // loops of a turn, so that what comes before them hardly counts
)

// BenchmarkJSON compares JSON.parse and JSON.stringify with the bare engine's own, in turns
// one after the other, so that what else the machine does hits both alike. It reports how
// many times as fast a run is, by processor time, as the median of the turns.
func BenchmarkJSON(b *testing.B) {
	for _, size := range []string{"1 KB", "100 KB"} {
		text := kilobyte()
		if size == "100 KB" {
			text = handlers[2].param()
		}
		for _, c := range jsonContests {
			b.Run(c.name+"/"+size, func(b *testing.B) { contest(b, c.code, text) })
		}
	}
}

func contest(b *testing.B, code, text string) {
	bare, own := bareJSON(b, code, text), runJSON(b, code, text)
	n := 1
	for ; n < jsonLeast || timed(func() { bare(n) }) < jsonTurn; n *= 2 {
	}
	var ratios, per []float64
	for b.Loop() { // with -benchtime 1x
		for range jsonTurns {
			theirs := timed(func() { bare(n) })
			ours := timed(func() { own(n) })
			ratios = append(ratios, float64(theirs)/float64(ours))
			per = append(per, float64(ours)/float64(n)/1000)
		}
	}
	slices.Sort(ratios)
	slices.Sort(per)
	b.ReportMetric(ratios[len(ratios)/2], "times-goja")
	b.ReportMetric(ratios[len(ratios)/4], "quarter")
	b.ReportMetric(per[len(per)/2], "cpu-us/op")
}

// timed is the processor time of f, on a clean heap.
func timed(f func()) time.Duration {
	runtime.GC()
	begun := usedTime()
	f()
	return time.Duration(usedTime() - begun)
}

func bareJSON(b *testing.B, code, text string) func(n int) {
	rt := goja.New()
	v, err := rt.RunString("(function (text, n) { var sum = 0; " + code + "; return sum })")
	if err != nil {
		b.Fatal(err)
	}
	f := callable(v)
	return func(n int) {
		if _, err := f(goja.Undefined(), rt.ToValue(text), rt.ToValue(n)); err != nil {
			b.Fatal(err)
		}
	}
}

func runJSON(b *testing.B, code, text string) func(n int) {
	br := newBridge(b, Config{})
	p := compile(b, "var text = V8.Cache.Get('k'), n = V8.Param.n, sum = 0; "+code+"; return sum")
	e := env()
	e.Cache = &memCache{strings: map[string]string{"k": text}}
	return func(n int) {
		e.Param, e.Limits.Deadline = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), time.Now().Add(time.Hour)
		if _, err := br.Run(context.Background(), p, e); err != nil {
			b.Fatal(err)
		}
	}
}
