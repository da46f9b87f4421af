// expect: script_error limit_memory timeout
var a = []; function* g() { yield 1; } for (;;) { var x = g(); x.next(); a.push(x); };
