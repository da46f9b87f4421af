// expect: result_invalid
return new Promise(function () {});
