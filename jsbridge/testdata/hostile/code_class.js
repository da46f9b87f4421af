// expect: script_error
class F extends Function {} new F('return 1')();
