// expect: timeout script_error limit_memory
var big = []; for (var i = 0; i < 1e6; i++) big.push(i);
var s = 'x'.repeat(1 << 23); big.map(V8.EncryptHelper.MD5Encrypt ? V8.EncryptHelper.MD5Encrypt.bind(null, s) : btoa.bind(null, s));
