// expect: ok limit_memory
var o = {}; for (var i = 0; i < 3e5; i++) o = Object.create(o); o.y = 1; return [String(o.x), 'x' in o, o instanceof Array];
