// expect: limit_stack
var o = { get a() { var { a } = o; return a; } }; var { a } = o; return a;
