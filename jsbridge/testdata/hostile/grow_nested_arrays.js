// expect: limit_memory script_error timeout
var a = []; for (;;) a = [a, a, a];
