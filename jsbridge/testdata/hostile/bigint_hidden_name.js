// expect: script_error timeout limit_memory
var B = globalThis['Big' + 'Int']; var a = B(3); for (;;) a = a * a;
