// expect: limit_output script_error
return new Uint8Array(64 << 20);
