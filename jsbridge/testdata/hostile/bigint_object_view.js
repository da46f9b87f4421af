// expect: script_error timeout limit_memory limit_regex
new DataView(new ArrayBuffer(8)).setBigInt64(0, { valueOf: function () { return '9'.repeat(1 << 23); } });
