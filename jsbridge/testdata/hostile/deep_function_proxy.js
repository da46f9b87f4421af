// expect: ok timeout script_error limit_memory limit_stack result_invalid
var f = function () {}; for (var i = 0; i < 1e5; i++) { var g = function () {}; Object.setPrototypeOf(g, f); f = g; } return f instanceof Function;
