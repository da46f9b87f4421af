// expect: script_error timeout limit_memory limit_regex
var A = globalThis['Big' + 'Int64Array'], a = Reflect.construct(A, [1], Array); Reflect.set(a, 0, '9'.repeat(1 << 23));
