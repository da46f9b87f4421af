// expect: limit_stack script_error
function t() { return t`x`; } t`x`;
