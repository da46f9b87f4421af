// expect: script_error
var o = {}; for (var i = 0; i < 1e5; i++) o = Object.create(new Proxy(o, {})); return String(o.x);
