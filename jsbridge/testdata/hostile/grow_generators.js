// expect: limit_memory script_error timeout
var a = []; function* g() { yield 1; } for (;;) { var x = g(); x.next(); a.push(x); };
