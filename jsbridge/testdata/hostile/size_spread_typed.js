// expect: script_error limit_memory timeout
[...new Uint8Array(64 << 20)];
