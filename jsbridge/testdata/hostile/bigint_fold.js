// expect: script_error timeout limit_memory
if (false) 2n ** 9999999999n; return String(3n ** 99999999n).length;
