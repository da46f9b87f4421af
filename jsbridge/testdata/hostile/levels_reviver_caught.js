// expect: ok
var n = 0; for (var i = 0; i < 50; i++) try { JSON.parse('[1,2]', function (k, v) { if (k === '0') this[1] = this; return v; }); } catch (e) { if (e instanceof RangeError) n++; } return n === 50 ? 'ok' : console.nothing();
