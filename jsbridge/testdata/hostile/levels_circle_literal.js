// expect: ok
var o = { __proto__: new Proxy({ x: 1 }, {}) }; return [o.x, 'y' in o];
