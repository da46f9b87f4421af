// expect: script_error limit_memory timeout ok
new RegExp('(?=x)[' + 'a-z'.repeat(1e6) + ']');
