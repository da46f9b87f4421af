// expect: ok timeout script_error limit_memory limit_stack result_invalid
var p = Promise.resolve(1); for (var i = 0; i < 1e5; i++) p = Promise.resolve(p).then(function (x) { return x; }); return await p;
