// expect: script_error timeout limit_memory
var o = { a: 3n }; for (;;) o.a = o.a * o.a;
