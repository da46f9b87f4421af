// expect: script_error timeout limit_memory
var a = 1n << 60000n; for (;;) `${a}`;
