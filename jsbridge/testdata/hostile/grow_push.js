// expect: limit_memory
var a = []; for (;;) a.push({ a: 1, b: 2 });
