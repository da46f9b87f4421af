// expect: limit_memory
var m = new Map(); for (var i = 0; ; i++) m.set(i, 'v' + i);
