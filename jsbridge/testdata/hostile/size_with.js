// expect: script_error limit_memory timeout
Array.prototype.with.call({ length: 4e9 }, 0, 0);
