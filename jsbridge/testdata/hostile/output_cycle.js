// expect: result_invalid
var a = {}; a.a = a; return a;
