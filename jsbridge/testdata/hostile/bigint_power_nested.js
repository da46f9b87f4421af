// expect: script_error timeout limit_memory
(2n ** 60000n) ** 60000n;
