// expect: script_error timeout limit_memory
BigInt.asUintN(2 ** 40, -1n);
