// expect: script_error limit_memory timeout
var B = globalThis['Big' + 'Int']; var a = B(3); for (;;) a = a * a;
