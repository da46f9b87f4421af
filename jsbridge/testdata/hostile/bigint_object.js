// expect: script_error limit_memory timeout
BigInt({ valueOf: function () { return '9'.repeat(1 << 24); } });
