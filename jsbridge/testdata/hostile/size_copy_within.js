// expect: script_error limit_memory timeout
Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1);
