// expect: script_error limit_memory timeout
var s = 'x'.repeat(1 << 24); var a = []; for (;;) a.push(new Error(s + Math.random()));
