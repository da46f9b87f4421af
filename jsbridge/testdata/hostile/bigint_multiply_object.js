// expect: script_error timeout limit_memory
var a = 3n, o = { valueOf: function () { return a; } }; for (;;) a = o * o;
