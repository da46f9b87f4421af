// expect: ok timeout script_error limit_memory limit_stack result_invalid
var f = function () { return 1; }; for (var i = 0; i < 60; i++) f = new Proxy(f, {}); for (var j = 0; j < 1e4; j++) f(); return f();
