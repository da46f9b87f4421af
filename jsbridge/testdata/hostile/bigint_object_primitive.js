// expect: script_error timeout limit_memory limit_regex
BigInt.asIntN(64, { [Symbol.toPrimitive]: function () { return '9'.repeat(1 << 23); } });
