// expect: script_error limit_memory timeout
var s = 'ä'.repeat(1 << 24); for (;;) s = escape(s);
