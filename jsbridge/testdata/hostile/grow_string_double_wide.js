// expect: limit_memory
var s = 'ä'; for (;;) s = s + s;
