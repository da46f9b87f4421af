// expect: script_error limit_memory timeout
var a = []; for (var i = 0; ; i++) a.push(V8.Param.x, structuredClone({ i: i, s: 'y' + i }));
