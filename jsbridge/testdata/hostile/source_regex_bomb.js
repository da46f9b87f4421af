// expect: script_syntax timeout script_error limit_memory ok
return /(?=x)(?:(?:(?:(?:x{1000}){1000}){1000}){1000})/.test('x');
