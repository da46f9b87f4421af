// expect: script_error timeout limit_memory limit_regex
var o = [3n], i = 0; for (;;) o[i++ % 1] <<= 65000n;
