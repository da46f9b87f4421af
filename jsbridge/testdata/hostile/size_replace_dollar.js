// expect: script_error limit_memory timeout
'x'.repeat(1e6).replace(/x/g, '$`$`$`');
