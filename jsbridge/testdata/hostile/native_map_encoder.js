// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var s = 'x'.repeat(1 << 23), e = new TextEncoder(); big.map(e.encode.bind(e, s));
