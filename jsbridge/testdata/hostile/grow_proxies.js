// expect: limit_memory script_error timeout
var a = []; for (;;) a.push(new Proxy({}, {}));
