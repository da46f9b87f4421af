// expect: limit_stack
var F = function () {}; for (var i = 0; i < 3e3; i++) F = F.bind(); return new F();
