// expect: limit_memory script_error
var s = 'x'; for (;;) s += s;
