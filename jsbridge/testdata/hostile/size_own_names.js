// expect: script_error limit_memory timeout
Object.getOwnPropertyNames(new Uint8Array(64 << 20));
