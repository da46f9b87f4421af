package jsbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dop251/goja"
)

// The peers of a fresh run: the engine bare, a new goja.Runtime for each run, and Node, which
// makes a new context in its own process for each run (vm.runInNewContext). Both are given
// the same code and the same JSON text, and must give back JSON text.

// handlers are the scripts of the comparison. Each reads Param and answers.
var handlers = []struct {
	name, code string
	param      func() string
}{
	{"trivial", `return { Code: 1, Data: { Hello: 'world' } };`, func() string { return `{}` }},
	{"1 KB", summing, kilobyte},
	{"100 KB", summing, func() string {
		return `{"Items":[` + strings.Repeat(kilobyteItem+",", 1370) + kilobyteItem + `]}`
	}},
}

const (
	kilobyteItem = `{"Id":7,"Name":"product 7","Price":70.5,"Tags":["a","b"],"Stock":21}`
	// It touches every item and answers with as much as it got.
	summing = `var sum = 0, items = V8.Param.Items.map(function (x) { sum += x.Price * x.Stock; return { Id: x.Id, Name: x.Name.toUpperCase(), Tags: x.Tags, Left: x.Stock - 1 }; });
return { Code: 1, Data: { Sum: sum, Items: items } };`
)

// BenchmarkFreshRun is one run that sees nothing of any other.
func BenchmarkFreshRun(b *testing.B) {
	for _, h := range handlers {
		param := h.param()
		b.Run(h.name+"/apiengine", func(b *testing.B) {
			defer processorTime(b)()
			benchRun(b, h.code, func(e *Env) { e.Param = json.RawMessage(param) })
		})
		b.Run(h.name+"/goja bare", func(b *testing.B) {
			defer processorTime(b)()
			benchGoja(b, h.code, param)
		})
		b.Run(h.name+"/Node", func(b *testing.B) { benchNode(b, h.code, param) })
	}
}

// processorTime reports the processor time of a run, which other work on the machine changes
// less than the time on the clock.
func processorTime(b *testing.B) func() {
	begun := usedTime()
	return func() { b.ReportMetric(float64(usedTime()-begun)/float64(b.N)/1000, "cpu-us/op") }
}

func usedTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // 0 where there is none
	return u.Utime.Nano() + u.Stime.Nano()
}

func benchGoja(b *testing.B, code, param string) {
	prog := goja.MustCompile("h.js", "JSON.stringify((function (V8) {"+code+"})({ Param: JSON.parse(text) }))", false)
	b.ReportAllocs()
	for b.Loop() {
		rt := goja.New()
		if err := rt.Set("text", param); err != nil {
			b.Fatal(err)
		}
		if v, err := rt.RunProgram(prog); err != nil || len(v.String()) < 10 {
			b.Fatal(v, err)
		}
	}
}

// nodeScript runs a compiled handler b.N times, each in a new context, and prints the time.
const nodeScript = `const vm = require('vm'), fs = require('fs');
const [code, param] = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const script = new vm.Script('JSON.stringify((function (V8) {' + code + '})({ Param: JSON.parse(text) }))');
const run = () => { const out = script.runInNewContext({ text: param }); if (out.length < 10) throw new Error(out); };
for (let i = 0; i < 20; i++) run();
const n = Number(process.argv[3]), start = process.hrtime.bigint(), cpu = process.cpuUsage();
for (let i = 0; i < n; i++) run();
const used = process.cpuUsage(cpu);
console.log(String(process.hrtime.bigint() - start), process.memoryUsage().rss, used.user + used.system);`

func benchNode(b *testing.B, code, param string) {
	node, err := exec.LookPath("node")
	if err != nil {
		b.Skip("there is no node")
	}
	dir := b.TempDir()
	text, err := json.Marshal([]string{code, param})
	if err != nil {
		b.Fatal(err)
	}
	for name, content := range map[string][]byte{"run.js": []byte(nodeScript), "in.json": text} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	const runs = 300
	var spent, rounds, rss, cpu float64
	for b.Loop() { // one loop is so many runs in one process, whose start does not count
		out, err := exec.Command(node, filepath.Join(dir, "run.js"), filepath.Join(dir, "in.json"), strconv.Itoa(runs)).CombinedOutput()
		var ns, used int64
		if _, scanErr := fmt.Sscan(string(bytes.TrimSpace(out)), &ns, &rss, &used); err != nil || scanErr != nil {
			b.Fatalf("%v %v: %s", err, scanErr, out)
		}
		spent, rounds, cpu = spent+float64(ns), rounds+1, cpu+float64(used)
	}
	b.ReportMetric(cpu/rounds/runs, "cpu-us/op")
	b.ReportMetric(spent/rounds/runs, "ns/op")
	b.ReportMetric(rss/(1<<20), "MB-rss")
}

// BenchmarkRunMemory is what one run adds to the heap while it holds its result: the kept
// runtime and what the run itself made.
func BenchmarkRunMemory(b *testing.B) {
	for _, h := range handlers {
		b.Run(h.name, func(b *testing.B) {
			br := newBridge(b, Config{})
			p := compile(b, h.code)
			e := env()
			e.Param, e.Limits.Deadline = json.RawMessage(h.param()), time.Now().Add(time.Hour)
			const many = 20
			var kept []*machine
			before := liveHeap()
			for range many {
				m, err := br.take(e.Tenant)
				if err != nil {
					b.Fatal(err)
				}
				kept = append(kept, m)
			}
			perRuntime := (liveHeap() - before) / many
			for _, m := range kept {
				br.put(m)
			}
			var a, z runtime.MemStats
			runtime.ReadMemStats(&a)
			n := 0
			for b.Loop() {
				if _, err := br.Run(context.Background(), p, e); err != nil {
					b.Fatal(err)
				}
				n++
			}
			runtime.ReadMemStats(&z)
			b.ReportMetric(float64(perRuntime)/1024, "KB/runtime")
			b.ReportMetric(float64(z.TotalAlloc-a.TotalAlloc)/float64(n)/1024, "KB-allocated/run")
		})
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
