// expect: script_error limit_memory timeout
Math.max.apply(null, { length: 1e9 });
