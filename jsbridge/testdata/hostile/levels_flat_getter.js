// expect: script_error
var a = []; Object.defineProperty(a, 0, { get: function () { return a; }, enumerable: true }); return a.flat(Infinity);
