// expect: limit_stack
var f = function () {}; Object.defineProperty(f, 'name', { get: Function.prototype.bind.bind(f) }); return f.bind();
