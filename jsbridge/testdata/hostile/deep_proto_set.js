// expect: ok timeout script_error limit_memory limit_stack result_invalid
var o = {}; for (var i = 0; i < 2e4; i++) o = Object.setPrototypeOf({}, new Proxy(o, {})); o.y = 1;
