// expect: script_error
var a = []; Object.defineProperty(a, 0, { get: function () { return [a]; } }); return a.join();
