// expect: script_error timeout limit_memory
BigInt('0x' + 'f'.repeat(1 << 24));
