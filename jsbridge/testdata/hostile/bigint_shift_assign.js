// expect: script_error limit_memory timeout
var a = 1n; a <<= 9999999999n;
