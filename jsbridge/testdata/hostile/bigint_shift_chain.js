// expect: script_error limit_memory timeout
var a = 1n; for (;;) a = a << 60000n;
