// expect: ok timeout script_error limit_memory limit_stack result_invalid
var p = Promise.resolve(1); async function w(x) { return await x; } for (var i = 0; i < 1e5; i++) p = w(p); return await p;
