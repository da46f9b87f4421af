// expect: limit_output
var n = { toJSON: function () { return new Array(1e6).fill("xxxxxxxxxxxx"); } }; return n;
