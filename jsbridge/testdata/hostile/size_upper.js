// expect: script_error limit_memory timeout
'ŉ'.repeat(1 << 24).toUpperCase();
