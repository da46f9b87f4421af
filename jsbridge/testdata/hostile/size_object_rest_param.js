// expect: script_error limit_memory timeout
(function ({ a, ...rest }) {})('x'.repeat(1 << 24));
