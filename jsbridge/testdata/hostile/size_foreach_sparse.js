// expect: script_error limit_memory timeout
new Array(4e9).forEach(function () {});
