// expect: limit_memory script_error
var s = 'ä'; for (;;) s = s + s;
