// expect: script_error timeout limit_memory
var a = 1n; for (;;) a = a << 60000n;
