// expect: script_error
return { get a() { throw new Error('no'); } };
