// expect: result_invalid
return function () {};
