// expect: script_error limit_memory timeout
var a = []; a.length = 4e9; a.sort();
