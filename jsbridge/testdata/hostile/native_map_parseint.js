// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var s = '1'.repeat(1 << 24); big.map(parseInt.bind(null, s));
