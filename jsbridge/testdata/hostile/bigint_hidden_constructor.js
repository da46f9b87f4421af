// expect: script_error limit_memory timeout
var a = new globalThis['Big' + 'Int64Array'](1)[0]; a++; a++; a++; for (;;) a = a ** a;
