// expect: script_error limit_memory timeout
var s = 'x'.repeat(1 << 24); for (;;) s = btoa(s);
