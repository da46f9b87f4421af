// expect: ok timeout script_error limit_memory limit_stack result_invalid
var a = []; for (var i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);
