// expect: script_error timeout
throw { get message() { for (;;) {} } };
