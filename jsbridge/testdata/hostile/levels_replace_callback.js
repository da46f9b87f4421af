// expect: limit_stack
var f = function () { return 'a'.replace(/a/, f); }; return f();
