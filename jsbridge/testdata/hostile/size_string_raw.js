// expect: script_error limit_memory timeout
String.raw({ raw: { length: 1e9 } });
