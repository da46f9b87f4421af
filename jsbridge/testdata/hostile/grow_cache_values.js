// expect: limit_memory script_error timeout
var a = []; for (var i = 0; ; i++) a.push(V8.Param.x, structuredClone({ i: i, s: 'y' + i }));
