// expect: limit_stack
function t() { return t`${t`x`}`; } return t`x`;
