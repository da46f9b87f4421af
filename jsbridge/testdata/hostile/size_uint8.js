// expect: script_error limit_memory timeout
new Uint8Array(1e10);
