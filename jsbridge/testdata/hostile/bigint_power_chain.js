// expect: script_error timeout limit_memory
var a = 3n; for (;;) a = a ** 3n;
