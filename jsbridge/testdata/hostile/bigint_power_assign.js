// expect: script_error timeout limit_memory
var a = 3n; a **= 99999999n;
