// expect: script_error timeout limit_memory limit_regex
var a = 3n; for (;;) a <<= 65000n;
