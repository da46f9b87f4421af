// expect: script_error limit_memory timeout
var o = []; for (var i = 0; ; i++) o[i * 1e5] = i;
