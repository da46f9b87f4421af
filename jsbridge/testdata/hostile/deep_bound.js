// expect: ok timeout script_error limit_memory limit_stack result_invalid
var f = function () {}; for (var i = 0; i < 1e5; i++) f = f.bind(); return f();
