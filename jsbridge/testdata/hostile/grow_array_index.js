// expect: limit_memory
var a = []; for (var i = 0; ; i++) a[i] = i;
