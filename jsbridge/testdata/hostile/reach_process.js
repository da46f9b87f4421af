// expect: script_error
process.exit(1);
