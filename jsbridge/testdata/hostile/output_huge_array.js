// expect: limit_output
return new Array(1e6).fill('x'.repeat(1000));
