package jsbridge

import (
	_ "embed"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
)

//go:embed prelude.js
var preludeSource string

// machine is one kept runtime and the goroutine that runs scripts in it. Everything a
// script can reach in it is frozen once; what belongs to one run hangs on cur and on a V8
// object made for that run. It serves one tenant for all its life.
type machine struct {
	b       *Bridge
	tenant  string
	number  uint16 // spelled on its goroutine's stack
	rt      *goja.Runtime
	jobs    chan *run
	done    chan struct{}
	cur     *run                // the run going on; nil between runs
	running atomic.Pointer[run] // the same for other goroutines
	state   atomic.Int32
	runs    int
	level   int // of built-ins and walks that are inside one another
	used    time.Time

	v8Proto    *goja.Object
	queryProto *goja.Object
	dbs        goja.Value                 // V8.Dbs
	handles    map[*goja.Object]*dbHandle // V8.Db and its kin; V8.Dbs.<name> are in the run
	dbProto    *goja.Object
	lockProto  *goja.Object
	lazyTraps  goja.ProxyTrapConfig
	frozen     int64 // objects that the prelude froze

	preventExtensions goja.Callable
	hasOwn            goja.Callable
	freeze            goja.Callable
	objectKeys        goja.Callable
	reflectGet        goja.Callable
	reflectDefine     goja.Callable
	reflectDelete     goja.Callable
	in                *layout
	objectProto       *goja.Object
	arrayProto        *goja.Object
	scratch           []byte // of JSON.stringify
	start             goja.Callable
	finish            goja.Callable
	tryCall           goja.Callable
	tryBody           func()
	numeric           goja.Callable
	primitive         goja.Callable
	guards            []goja.Value // for instrumented scripts
	growing           *growth      // the replace that is going on
}

// newMachine makes a runtime ready for scripts. It takes some milliseconds.
func newMachine(b *Bridge, tenant string) (*machine, error) {
	m := &machine{b: b, tenant: tenant, number: uint16(b.made.Add(1)), rt: goja.New(), jobs: make(chan *run), done: make(chan struct{}, 1),
		handles: map[*goja.Object]*dbHandle{}}
	m.rt.SetMaxCallStackSize(defaultStack)
	if err := m.setUp(); err != nil {
		return nil, fmt.Errorf("jsbridge: prepare a runtime: %w", err)
	}
	return m, nil
}

func (m *machine) setUp() error {
	object := m.rt.Get("Object").(*goja.Object)
	m.preventExtensions = callable(object.Get("preventExtensions"))
	m.freeze = callable(object.Get("freeze"))
	m.hasOwn = callable(object.Get("hasOwn"))
	m.objectKeys = callable(object.Get("keys"))
	reflect := m.rt.Get("Reflect").(*goja.Object)
	m.reflectGet, m.reflectDelete = callable(reflect.Get("get")), callable(reflect.Get("deleteProperty"))
	m.reflectDefine = callable(reflect.Get("defineProperty"))
	m.in, m.objectProto, m.arrayProto = m.b.layout, m.prototype("Object"), m.prototype("Array")
	m.lazyTraps = m.newLazyTraps()
	m.start = callable(m.native("start", m.startRun))
	m.finish = callable(m.native("finish", m.finishRun))
	m.tryCall = callable(m.native("try", func(goja.FunctionCall) goja.Value {
		m.tryBody()
		return goja.Undefined()
	}))
	m.rt.SetPromiseRejectionTracker(m.trackRejection)

	m.installJSON()
	m.installConsole()
	m.installRegExpLimit()
	m.installCaps()
	if err := m.capGenerators(); err != nil {
		return err
	}
	if err := m.installSizes(); err != nil {
		return err
	}
	frozen := m.installFuncs()

	prelude, err := m.rt.RunProgram(m.b.prelude)
	if err != nil {
		return err
	}
	host := m.preludeHost(frozen)
	n, err := callable(prelude)(goja.Undefined(), host)
	if err != nil {
		return err
	}
	m.frozen = n.ToInteger()
	m.numeric, m.primitive = callable(host.Get("numeric")), callable(host.Get("primitive"))
	for i := range guardNames {
		m.guards = append(m.guards, host.Get("guards").(*goja.Object).Get(strconv.Itoa(i)))
	}
	return nil
}

func callable(v goja.Value) goja.Callable {
	f, ok := goja.AssertFunction(v)
	if !ok {
		panic(fmt.Sprintf("jsbridge: %v is no function", v))
	}
	return f
}

// native makes a function; its name is what scripts see, never that of Go code.
func (m *machine) native(name string, f func(goja.FunctionCall) goja.Value) *goja.Object {
	fn := m.rt.ToValue(f).(*goja.Object)
	_ = fn.DefineDataProperty("name", m.rt.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return fn
}

// hide defines a property as built-ins have theirs: not enumerable.
func hide(obj *goja.Object, name string, v goja.Value) {
	_ = obj.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

func (m *machine) isArray(obj *goja.Object) bool {
	for range 100 {
		switch obj.ExportType() {
		case typeArray:
			return obj.ClassName() == "Array"
		case typeProxy:
			p, _ := obj.Export().(goja.Proxy)
			if obj = p.Target(); obj == nil {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// The states of a machine: its goroutine waits or runs, or Run has left it behind.
const (
	machineIdle int32 = iota
	machineBusy
	machineLeft
)

// serve runs the jobs of m until its channel is closed, or until the run that Run gave
// up waiting for ends after all.
func (m *machine) serve() {
	m.b.memory.add(m)
	for r := range m.jobs {
		m.state.Store(machineBusy)
		r.execute()
		if !m.state.CompareAndSwap(machineBusy, machineIdle) {
			m.b.memory.leave(m)
			m.b.memory.remove(m)
			m.b.stuck.Add(-1)
			r.ended()
			return // serving.Done was called when m was left
		}
		m.done <- struct{}{}
	}
	m.b.memory.remove(m)
	m.b.serving.Done()
}

// check ends the run going on when it was interrupted.
func (m *machine) check() {
	if m.cur != nil { // nil while the prelude runs
		m.cur.checkStopped()
	}
}

// try runs f as a native, so that whatever ends it, interrupts too, comes back as an error.
func (m *machine) try(f func()) error {
	m.tryBody = f
	_, err := m.tryCall(goja.Undefined())
	return err
}
