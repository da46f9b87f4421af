// expect: script_error limit_memory timeout
var s = 'x'.repeat(1 << 20), a = []; for (;;) { console.log(s); a.push(s + a.length); };
