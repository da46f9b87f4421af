// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var o = {}; for (var i = 0; i < 2e4; i++) o['k' + i] = 1; big.map(Reflect.ownKeys.bind(null, o));
