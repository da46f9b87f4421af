// expect: limit_memory
var s = 'x'; for (;;) s = `${s}${s}`;
