// expect: script_error timeout limit_memory
BigInt.asIntN(2 ** 40, -1n);
