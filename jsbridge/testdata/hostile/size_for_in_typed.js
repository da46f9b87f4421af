// expect: script_error limit_memory timeout
for (var k in new Uint8Array(64 << 20)) { if (k === 'x') break; };
