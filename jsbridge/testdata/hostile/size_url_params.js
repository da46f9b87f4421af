// expect: script_error limit_memory timeout
var u = new URLSearchParams('a=1&'.repeat(1 << 20)); for (;;) u.append('x', 'y'.repeat(1000));
