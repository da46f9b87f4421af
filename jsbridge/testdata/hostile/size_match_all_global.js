// expect: script_error limit_memory timeout
'x'.repeat(1 << 24).match(/x/g);
