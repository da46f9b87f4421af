// expect: script_error limit_memory timeout
new URL('http://a/' + '%'.repeat(1 << 24));
