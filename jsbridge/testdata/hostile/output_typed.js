// expect: limit_output script_error limit_memory
return new Uint8Array(64 << 20);
