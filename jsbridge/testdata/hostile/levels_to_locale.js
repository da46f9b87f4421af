// expect: ok
var a = []; a.push({ toLocaleString: Array.prototype.toLocaleString.bind(a) }); return a.toLocaleString();
