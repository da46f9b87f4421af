// expect: script_error limit_memory timeout
Reflect.ownKeys(new Uint8Array(64 << 20));
