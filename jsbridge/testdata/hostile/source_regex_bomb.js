// expect: script_syntax script_error limit_memory timeout ok
return /(?=x)(?:(?:(?:(?:x{1000}){1000}){1000}){1000})/.test('x');
