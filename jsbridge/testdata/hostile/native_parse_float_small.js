// expect: timeout limit_memory script_error
for (;;) Number.parseFloat('9'.repeat(1 << 22));
