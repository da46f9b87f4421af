// expect: script_error limit_memory timeout
var a = new Array(1e6).fill(1); a.flatMap(function () { return a; });
