// expect: script_error limit_memory timeout
Object.keys(new Uint8Array(64 << 20));
