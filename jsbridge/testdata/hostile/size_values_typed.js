// expect: script_error limit_memory timeout
Object.values(new Uint8Array(64 << 20));
