// expect: limit_stack
var o = {}; Object.defineProperty(o, Symbol.toStringTag, { get: Object.prototype.toString.bind(o) }); return String(o);
