// expect: script_error timeout limit_memory
var a = new globalThis['Big' + 'Int64Array'](1)[0]; a++; a++; a++; for (;;) a = a ** a;
