// expect: limit_stack
var e = new Error('a'); Object.defineProperty(e, 'message', { get: Error.prototype.toString.bind(e) }); return String(e);
