// expect: script_error limit_memory timeout
new RegExp('(?:(?:(?:x{1000}){1000}){1000})');
