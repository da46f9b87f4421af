// expect: limit_output script_error
return new Array(4294967295);
