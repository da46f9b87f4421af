// expect: script_error limit_memory timeout
'x'.repeat(1e4).replace(/(x+)/g, '$1'.repeat(1e6));
