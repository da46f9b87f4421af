// expect: script_error limit_memory timeout
[].concat({ length: 2 ** 40, [Symbol.isConcatSpreadable]: true });
