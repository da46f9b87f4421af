// expect: ok limit_memory limit_stack
var C = class {}; for (var i = 0; i < 1e5; i++) C = class extends C {}; return String(new C().x);
