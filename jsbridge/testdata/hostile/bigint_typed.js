// expect: script_error limit_memory timeout
BigInt64Array.of('9'.repeat(1 << 24));
