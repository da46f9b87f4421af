// expect: script_error timeout limit_memory
BigInt64Array.of('9'.repeat(1 << 24));
