// expect: ok timeout script_error limit_memory limit_stack result_invalid
var o = {}; for (var i = 0; i < 1e6; i++) o = Object.create(o); return String(o.x);
