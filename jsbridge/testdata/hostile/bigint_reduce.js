// expect: script_error timeout limit_memory
return String([3n, 3n].concat(new Array(100).fill(3n)).reduce(function (a, b) { return (a ** 7n) * b; }));
