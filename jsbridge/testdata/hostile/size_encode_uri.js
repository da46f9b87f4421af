// expect: script_error limit_memory timeout
var s = '%'.repeat(1 << 24); for (;;) s = encodeURIComponent(s);
