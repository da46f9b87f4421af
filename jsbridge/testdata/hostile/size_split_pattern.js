// expect: script_error timeout limit_memory limit_regex
for (;;) 'a,'.repeat(1 << 23).split(/,/);
