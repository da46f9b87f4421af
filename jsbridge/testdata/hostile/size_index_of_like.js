// expect: script_error limit_memory timeout
Array.prototype.indexOf.call({ length: 2 ** 53 }, 1);
