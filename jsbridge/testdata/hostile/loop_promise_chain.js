// expect: timeout
function again() { return Promise.resolve().then(again); }
again();
return 1;
