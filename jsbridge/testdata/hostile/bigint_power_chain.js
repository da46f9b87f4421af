// expect: script_error limit_memory timeout
var a = 3n; for (;;) a = a ** 3n;
