// expect: script_error limit_memory timeout
'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e6));
