// expect: script_error limit_memory timeout
var a = [1], s; for (;;) { a = [a, JSON.parse(JSON.stringify(a))]; };
