// expect: script_error limit_memory timeout
new RegExp('('.repeat(1e5) + ')'.repeat(1e5));
