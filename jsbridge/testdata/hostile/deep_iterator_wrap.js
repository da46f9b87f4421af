// expect: ok timeout script_error limit_memory limit_stack result_invalid
var it = [1][Symbol.iterator](); function* w(x) { yield* x; } for (var i = 0; i < 1e5; i++) it = w(it); return [...it];
