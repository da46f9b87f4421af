// expect: script_error timeout limit_memory
var a = 1n; for (var i = 0; i < 1e5; i++) a += a; for (;;) String(a);
