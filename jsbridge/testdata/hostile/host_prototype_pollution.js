// expect: ok
({}).__proto__.polluted = 1; Object.prototype.polluted = 2; return typeof ({}).polluted;
