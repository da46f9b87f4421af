// expect: script_error limit_memory timeout
String(new Uint8Array(64 << 20));
