// expect: limit_memory
var l = []; [3, 2, 1].sort(function () { for (;;) l.push({}); });
