// expect: timeout
var t = { then: function (ok) { ok(t); } };
return await t;
