// expect: script_error limit_memory timeout
var a = new Array(1e6).fill(1); a.concat(...new Array(1000).fill(a));
