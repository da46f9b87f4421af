// expect: script_error limit_memory timeout
var f = Math.max; for (;;) f = f.bind(null, ...new Array(6e4).fill(1));
