// expect: script_error timeout limit_memory
BigInt({ valueOf: function () { return '9'.repeat(1 << 24); } });
