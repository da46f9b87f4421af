// expect: script_error limit_memory timeout
var a = []; a[4294967294] = 1; for (var i = 0; i < 1e5; i++) a[i * 40000] = 1; a.sort().reverse().join();
