// expect: script_error
var a = {}; a.a = a; throw a;
