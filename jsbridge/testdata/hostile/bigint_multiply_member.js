// expect: script_error limit_memory timeout
var o = { a: 3n }; for (;;) o.a = o.a * o.a;
