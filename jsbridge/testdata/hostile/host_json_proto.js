// expect: ok
var o = JSON.parse('{"__proto__":{"x":1}}'); return typeof o.x + typeof ({}).x;
