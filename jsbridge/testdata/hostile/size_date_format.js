// expect: script_error limit_memory timeout
DateFormat(new Date(), 'yyyy'.repeat(1 << 22));
