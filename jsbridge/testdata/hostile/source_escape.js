// expect: script_syntax
}); for (;;) {} (function () {
