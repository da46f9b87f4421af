// expect: limit_stack
var f = Function.prototype.call; for (var i = 0; i < 3e3; i++) f = f.bind(f); return f();
