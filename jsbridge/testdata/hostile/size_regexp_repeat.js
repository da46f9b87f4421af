// expect: script_error limit_memory timeout ok
new RegExp('(?:(?:(?:x{1000}){1000}){1000})');
