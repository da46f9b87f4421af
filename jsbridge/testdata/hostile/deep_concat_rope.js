// expect: ok timeout script_error limit_memory limit_stack result_invalid
var s = ''; for (var i = 0; i < 1e5; i++) s = 'x' + s + 'y'; return s.length;
