// expect: limit_output result_invalid limit_stack limit_memory timeout
var n = { toJSON: function () { return [{ toJSON: n.toJSON }, { toJSON: n.toJSON }]; } }; return n;
