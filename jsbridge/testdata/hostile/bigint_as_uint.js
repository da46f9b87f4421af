// expect: script_error limit_memory timeout
BigInt.asUintN(2 ** 40, -1n);
