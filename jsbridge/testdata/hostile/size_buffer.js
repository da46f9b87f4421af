// expect: script_error limit_memory timeout
new ArrayBuffer(64e9);
