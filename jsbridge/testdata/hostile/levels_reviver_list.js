// expect: script_error
return JSON.parse("[1,2]", function (k, v) { if (k === "0") this[1] = this; return v; });
