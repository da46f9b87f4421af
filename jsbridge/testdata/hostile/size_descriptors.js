// expect: script_error limit_memory timeout
Object.getOwnPropertyDescriptors(new Uint8Array(64 << 20));
