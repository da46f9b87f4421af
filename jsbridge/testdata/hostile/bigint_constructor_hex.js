// expect: script_error limit_memory timeout
BigInt('0x' + 'f'.repeat(1 << 24));
