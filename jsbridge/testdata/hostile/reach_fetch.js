// expect: script_error
fetch('http://127.0.0.1/');
