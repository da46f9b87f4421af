// expect: limit_memory script_error timeout
var s = '', b = 'x'.repeat(1000), l = []; for (;;) { s += b; l.push(s); };
