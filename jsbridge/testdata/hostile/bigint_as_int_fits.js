// expect: script_error limit_memory timeout
BigInt.asIntN(1e10, 1n);
