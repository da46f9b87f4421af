// expect: script_error timeout limit_memory limit_regex
1n < { valueOf: function () { return '9'.repeat(1 << 23); } };
