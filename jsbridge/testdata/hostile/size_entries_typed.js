// expect: script_error limit_memory timeout
Object.entries(new Uint8Array(64 << 20));
