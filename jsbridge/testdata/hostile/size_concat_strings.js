// expect: script_error limit_memory timeout
var s = 'x'.repeat(1 << 24); s.concat(...new Array(6e4).fill(s));
