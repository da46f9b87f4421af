// expect: script_error timeout limit_memory limit_regex
({ toString: function () { return '9'.repeat(1 << 23); } }) == 1n;
