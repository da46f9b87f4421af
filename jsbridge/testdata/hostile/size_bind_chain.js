// expect: script_error limit_memory timeout
var f = function () {}; for (var i = 0; i < 1e6; i++) f = f.bind(null); f();
