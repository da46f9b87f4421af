// expect: script_error limit_memory timeout
Reflect.apply(Math.max, null, { length: 1e9 });
