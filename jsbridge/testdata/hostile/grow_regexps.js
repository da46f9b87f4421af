// expect: limit_memory script_error timeout
var a = []; for (var i = 0; ; i++) a.push(new RegExp('x' + i));
