// expect: result_invalid limit_memory
var a = 1; for (var i = 0; i < 1e5; i++) a = { a: a }; return a;
