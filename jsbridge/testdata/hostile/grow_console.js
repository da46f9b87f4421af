// expect: limit_memory script_error timeout
var s = 'x'.repeat(1 << 20), a = []; for (;;) { console.log(s); a.push(s + a.length); };
