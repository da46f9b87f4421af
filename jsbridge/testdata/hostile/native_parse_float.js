// expect: script_error timeout limit_memory limit_regex
for (;;) parseFloat('9'.repeat(1 << 24));
