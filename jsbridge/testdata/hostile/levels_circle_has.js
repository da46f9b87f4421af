// expect: script_error
var t = {}; if (Reflect.setPrototypeOf(t, Object.create(new Proxy(t, {})))) return 'x' in t;
