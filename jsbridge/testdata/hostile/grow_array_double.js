// expect: limit_memory script_error timeout
var a = [1]; for (;;) a = [...a, ...a];
