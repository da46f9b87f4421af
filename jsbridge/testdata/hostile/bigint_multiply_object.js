// expect: script_error limit_memory timeout
var a = 3n, o = { valueOf: function () { return a; } }; for (;;) a = o * o;
