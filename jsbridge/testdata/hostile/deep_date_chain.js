// expect: ok timeout script_error limit_memory limit_stack result_invalid
var o = { valueOf: function () { return 1; } }; for (var i = 0; i < 1e5; i++) o = { valueOf: o.valueOf.bind(o) }; return +o;
