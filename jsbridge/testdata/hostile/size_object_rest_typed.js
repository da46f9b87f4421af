// expect: script_error limit_memory timeout
var { a, ...rest } = new Uint8Array(64 << 20);
