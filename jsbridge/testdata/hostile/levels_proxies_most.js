// expect: ok limit_memory
var o = {}; for (var i = 0; i < 5e4; i++) o = Object.create(new Proxy(o, {})); o.y = 1; return [String(o.x), 'x' in o];
