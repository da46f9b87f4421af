// expect: script_error limit_memory timeout ok
DateFormat(new Date(), 'yyyy'.repeat(1 << 22));
