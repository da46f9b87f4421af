// expect: script_error
var t = {}; t.__proto__ = new Proxy(t, {}); return t.x;
