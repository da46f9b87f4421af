// expect: limit_memory
var w = new WeakMap(), k = []; for (;;) { var o = {}; w.set(o, [o]); k.push(o); };
