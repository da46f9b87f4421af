// expect: script_error limit_memory timeout
Array.from(new Uint8Array(64 << 20));
