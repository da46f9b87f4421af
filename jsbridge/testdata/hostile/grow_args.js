// expect: limit_memory
function f() { return arguments; } var a = []; for (;;) a.push(f(1, 2, 3));
