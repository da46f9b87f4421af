// expect: script_error limit_memory timeout ok
new RegExp('(?=x)(?:(?:(?:x{1000}){1000}){1000})').test('x'.repeat(1e6));
