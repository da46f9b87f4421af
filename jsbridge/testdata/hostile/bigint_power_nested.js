// expect: script_error limit_memory timeout
(2n ** 60000n) ** 60000n;
