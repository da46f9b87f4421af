// expect: limit_memory
var a = []; for (;;) a.push(function () { return a; });
