// expect: limit_memory script_error timeout
var a = [1], s; for (;;) { a = [a, JSON.parse(JSON.stringify(a))]; };
