// expect: script_error limit_memory timeout
new RegExp('(?=x)[' + 'a-z'.repeat(1e6) + ']');
