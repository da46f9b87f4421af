// expect: limit_stack
var o = {}; Object.defineProperty(o, 'x', { get: Reflect.get.bind(null, o, 'x') }); return o.x;
