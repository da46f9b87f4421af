// expect: limit_memory
var a = []; for (;;) { try { for (;;) a.push([1, 2, 3]); } catch (e) {} };
