// expect: script_error limit_memory timeout
var a = []; for (;;) a.push(new ArrayBuffer(64 << 20));
