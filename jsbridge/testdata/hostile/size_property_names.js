// expect: script_error limit_memory timeout
var o = {}; for (;;) o['x'.repeat(1 << 16) + Math.random()] = 1;
