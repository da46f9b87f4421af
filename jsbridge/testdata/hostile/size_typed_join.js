// expect: script_error limit_memory timeout
new Uint8Array(64 << 20).join('x'.repeat(1e6));
