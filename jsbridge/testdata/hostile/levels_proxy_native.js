// expect: limit_stack
var h = {}, p = new Proxy({}, h); h.get = Reflect.get.bind(null, p, 'x'); return p.x;
