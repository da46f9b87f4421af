// expect: result_invalid
return { a: 1n };
