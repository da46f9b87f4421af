// expect: limit_memory
var a = []; for (;;) a.push(new Uint8Array(1 << 20));
