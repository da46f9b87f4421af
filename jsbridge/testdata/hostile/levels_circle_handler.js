// expect: script_error
var h = {}, p = new Proxy({}, h); Object.setPrototypeOf(h, p); return p.x;
