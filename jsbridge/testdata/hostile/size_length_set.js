// expect: script_error limit_memory timeout
var a = [1]; a.length = 4294967295; a.reverse();
