// expect: script_error limit_memory timeout
var s = '', b = 'x'.repeat(1000), l = []; for (;;) { s += b; l.push(s); };
