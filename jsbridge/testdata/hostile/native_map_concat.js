// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
big.map(Array.prototype.concat.bind(big, big));
