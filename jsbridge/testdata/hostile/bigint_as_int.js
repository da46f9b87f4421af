// expect: script_error limit_memory timeout
BigInt.asIntN(2 ** 40, -1n);
