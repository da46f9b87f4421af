// expect: ok timeout script_error limit_memory limit_stack result_invalid
var a = []; a[0] = a; String(a);
