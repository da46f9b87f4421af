// expect: script_error limit_memory timeout
var a = [], u = new Float64Array(1 << 22); for (;;) a.push(u.slice());
