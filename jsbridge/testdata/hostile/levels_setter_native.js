// expect: limit_stack
var o = {}; Object.defineProperty(o, 'x', { set: Reflect.set.bind(null, o, 'x', 1) }); o.x = 1;
