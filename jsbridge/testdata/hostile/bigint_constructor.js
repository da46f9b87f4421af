// expect: script_error timeout limit_memory
BigInt('9'.repeat(1 << 24));
