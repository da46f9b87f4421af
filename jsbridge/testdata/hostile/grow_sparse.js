// expect: limit_memory script_error timeout
var o = []; for (var i = 0; ; i++) o[i * 1e5] = i;
