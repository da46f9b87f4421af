// expect: script_error limit_memory timeout
var a = []; for (var i = 0; ; i++) a.push(new RegExp('x' + i));
