// expect: limit_memory
var a = []; for (;;) a.push(new Date());
