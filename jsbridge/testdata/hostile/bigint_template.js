// expect: script_error limit_memory timeout
var a = 1n << 60000n; for (;;) `${a}`;
