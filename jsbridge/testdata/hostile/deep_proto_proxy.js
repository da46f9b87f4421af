// expect: ok timeout script_error limit_memory limit_stack result_invalid
var o = {}; for (var i = 0; i < 1e5; i++) o = Object.create(new Proxy(o, {})); o.x;
