// expect: script_error limit_memory timeout
Reflect.construct(Array, { length: 1e9 });
