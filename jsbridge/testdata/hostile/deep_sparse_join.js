// expect: ok script_error limit_memory timeout limit_stack result_invalid
var a = []; a[0] = a; String(a);
