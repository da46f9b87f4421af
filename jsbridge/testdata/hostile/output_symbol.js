// expect: result_invalid ok
return Symbol('x');
