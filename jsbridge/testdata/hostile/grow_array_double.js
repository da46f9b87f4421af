// expect: script_error limit_memory timeout
var a = [1]; for (;;) a = [...a, ...a];
