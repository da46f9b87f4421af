package engine_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"apiengine/apis"
	"apiengine/jsbridge"
)

// BenchmarkDefinitions loads 10 000 definitions into one tenant, each with a script of its
// own of about 1 KB and every second with an address, and looks them up.
func BenchmarkDefinitions(b *testing.B) {
	const many = 10_000
	list := make([]apis.Versioned, many)
	for i := range list {
		d := apis.Definition{ApiEngineKey: fmt.Sprintf("api_%d", i), Lock: true, LockKey: "OrderId", ApiV8Code: fmt.Sprintf(definitionCode, i, i)}
		if i%2 == 0 {
			d.ApiAddress = fmt.Sprintf("/shop/%d/{OrderId}/pay", i)
		}
		list[i] = apis.Versioned{Version: 1, Definition: d}
	}
	var c *apis.Catalog[*jsbridge.Program]
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			c = nil
			before := heap()
			c = apis.NewCatalog(func(d apis.Definition) (*jsbridge.Program, error) {
				return jsbridge.Compile(jsbridge.Source{Name: d.FileName(), Code: d.ApiV8Code, Language: d.Language, FirstLine: d.FirstLine})
			})
			start := used()
			if errs := c.Update("t", list, nil); len(errs) > 0 {
				b.Fatal(errs[0])
			}
			b.ReportMetric(float64(used()-start)/1000/many, "cpu-us/definition")
			b.ReportMetric(float64(heap()-before)/many, "bytes/definition")
		}
	})
	i := 0
	b.Run("by key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			i = (i + 7919) % many
			if _, ok := c.ByKey("t", list[i].Definition.ApiEngineKey); !ok {
				b.Fatal(i)
			}
		}
	})
	b.Run("by address", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			i = (i + 7918) % many &^ 1
			if e, _, ok := c.ByPath("t", fmt.Sprintf("/shop/%d/o-17/pay", i)); !ok || e.Version != 1 {
				b.Fatal(i)
			}
		}
	})
	b.Run("save one", func(b *testing.B) {
		start := used()
		defer func() { b.ReportMetric(float64(used()-start)/1000/float64(b.N), "cpu-us/op") }()
		for b.Loop() {
			if err := c.Put("t", 2, list[17].Definition); err != nil {
				b.Fatal(err)
			}
		}
	})
}

const definitionCode = `// handler %d
var id = V8.Param.OrderId;
if (!id) {
    return { Code: 0, Msg: 'OrderId is missing' };
}
var order = V8.FormEngine.GetFormData('orders', { Id: id });
if (order.Code !== 1) {
    return order;
}
var total = 0;
var lines = V8.Db.FromSql('SELECT qty, price FROM order_lines WHERE order_id = @p0').AddInParameter('@p0', id).ToArray();
lines.forEach(function (l) {
    total += l.qty * Number(l.price);
});
if (total > order.Data.Limit) {
    return { Code: 0, Msg: 'over the limit of ' + order.Data.Limit };
}
var affected = V8.Db.FromSql('UPDATE orders SET status = @p0, fence = @p1 WHERE id = @p2 AND fence < @p1')
    .AddInParameter('@p0', 'paid').AddInParameter('@p1', V8.FencingToken).AddInParameter('@p2', id).ExecuteNonQuery();
V8.Cache.Set('order:' + id, JSON.stringify({ Id: id, Total: total, By: %d }), 600);
return { Code: affected === 1 ? 1 : 0, Data: { Total: total } };
`

// used is the processor time of this process in nanoseconds.
func used() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // 0 where there is none
	return u.Utime.Nano() + u.Stime.Nano()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
