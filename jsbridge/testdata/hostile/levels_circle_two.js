// expect: script_error
var a = {}, b = {}; a.__proto__ = new Proxy(b, {}); b.__proto__ = new Proxy(a, {}); return a.x;
