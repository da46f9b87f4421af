// expect: script_error limit_memory timeout
var a = [1]; for (var i = 0; i < 40; i++) a = [a, a]; a.flat(Infinity);
