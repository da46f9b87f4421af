// expect: limit_output
var a = [1]; for (var i = 0; i < 40; i++) a = [a, a]; return a;
