// expect: limit_stack
var f = function () { return 1; }; for (var i = 0; i < 3e3; i++) f = f.bind(); return f();
