// expect: script_error limit_memory timeout
'x'.padEnd(2 ** 31, 'ab');
