// expect: script_error limit_memory timeout
var s = '\ufdfa'.repeat(1 << 24); s.normalize('NFKD');
