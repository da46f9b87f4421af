// expect: ok timeout script_error limit_memory limit_stack result_invalid
var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x;
