// expect: script_error limit_memory timeout
var s = 'x'.repeat(1 << 24), a = new Array(1e6).fill(s); String(a);
