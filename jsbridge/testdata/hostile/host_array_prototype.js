// expect: ok
Array.prototype.map = null; return typeof [].map;
