// expect: script_error
var t = {}; Object.setPrototypeOf(t, new Proxy(t, {})); t.x = 1;
