// expect: ok timeout script_error limit_memory limit_stack result_invalid
var e; for (var i = 0; i < 1e6; i++) e = new Error('x', { cause: e }); throw e;
