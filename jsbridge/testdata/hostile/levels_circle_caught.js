// expect: ok
var t = {}; try { Object.setPrototypeOf(t, new Proxy(t, {})); } catch (e) {} return [t.x, 'x' in t, t.y = 1, t instanceof Array, JSON.stringify(t)];
