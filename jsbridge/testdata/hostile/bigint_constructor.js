// expect: script_error limit_memory timeout
BigInt('9'.repeat(1 << 24));
