// expect: script_error ok
DateAdd(new Date(), 'd', 1e300, 'yyyy'); return 1;
