// expect: script_error limit_memory
var a = 1; for (var i = 0; i < 1e5; i++) a = [a]; V8.Cache.Set('k', a);
