// expect: limit_memory
var s = new Set(); for (var i = 0; ; i++) s.add('v' + i);
