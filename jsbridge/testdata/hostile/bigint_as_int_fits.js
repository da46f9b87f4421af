// expect: script_error timeout limit_memory
BigInt.asIntN(1e10, 1n);
