// expect: script_error limit_memory timeout
var a = []; for (;;) a.push(Symbol('x'.repeat(1 << 20)));
