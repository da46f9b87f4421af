// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var u = new Float64Array(1 << 23); big.map(u.indexOf.bind(u, 1));
