// expect: ok script_error limit_memory timeout limit_stack result_invalid
var a = []; for (var i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity);
