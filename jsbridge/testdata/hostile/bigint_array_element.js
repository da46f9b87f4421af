// expect: script_error timeout limit_memory limit_regex
var a = new BigInt64Array(1); a[0] = '9'.repeat(1 << 23);
