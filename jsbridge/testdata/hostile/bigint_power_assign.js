// expect: script_error limit_memory timeout
var a = 3n; a **= 99999999n;
