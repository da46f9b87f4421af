// expect: script_error timeout limit_memory limit_regex
var a = 3n, b = 2n ** 60000n; for (;;) a *= b;
