// expect: script_error timeout limit_memory limit_regex
var o = [3n], i = 0, b = 2n ** 60000n; for (;;) o[i++ % 1] *= b;
