// expect: ok script_error limit_memory timeout limit_stack result_invalid
var e; for (var i = 0; i < 1e6; i++) e = new Error('x', { cause: e }); throw e;
