// expect: script_error timeout limit_memory
var a = 1n; a <<= 9999999999n;
